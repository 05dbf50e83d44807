"""Where two tables of one instance differ, row by row of the same configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from parabolt.errors import OptionError
from parabolt.space.encoding import RowIndex

if TYPE_CHECKING:
    from parabolt.outcome import BoolArray, FloatArray, IntArray
    from parabolt.space.configuration import Configuration
    from parabolt.tables.table import Table


@dataclass(frozen=True, eq=False)
class ColumnDifference:
    """The cells of one column that differ.

    Attributes:
        column: The column.
        rows_a: Rows in the first table (k,), ascending.
        rows_b: The same configurations' rows in the second table (k,).
        largest_absolute: Largest absolute difference; NaN for texts.
        largest_relative: Largest difference as a share of the second table's value; NaN for texts.
    """

    column: str
    rows_a: IntArray
    rows_b: IntArray
    largest_absolute: float = float("nan")
    largest_relative: float = float("nan")


@dataclass(frozen=True, eq=False)
class TableDifference:
    """All that differs between two tables, A and B.

    Attributes:
        columns_only_a: Columns that only A has.
        columns_only_b: Columns that only B has.
        only_a: Configurations that only A has.
        only_b: Configurations that only B has.
        is_reordered: Whether the common configurations stand in another order.
        columns: The common columns that differ.
    """

    columns_only_a: tuple[str, ...]
    columns_only_b: tuple[str, ...]
    only_a: tuple[Configuration, ...]
    only_b: tuple[Configuration, ...]
    is_reordered: bool
    columns: tuple[ColumnDifference, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs."""
        return not (
            self.columns_only_a or self.columns_only_b or self.only_a or self.only_b
            or self.is_reordered or self.columns
        )  # fmt: skip


def difference(a: Table, b: Table, *, rtol: float = 0.0, atol: float = 0.0) -> TableDifference:
    """Compares two tables of the same knobs.

    Numbers x of A and y of B are the same where both are missing or NaN, or |x - y| <= atol + rtol
    |y|; other cells where they are equal, a missing text and an empty one being the same.

    Args:
        a: The first table.
        b: The second table.
        rtol: Relative tolerance.
        atol: Absolute tolerance, in the unit of each column.

    Raises:
        OptionError: If a tolerance is negative or the tables have other knobs.
    """
    if not (rtol >= 0 and atol >= 0):
        raise OptionError(f"expected tolerances of 0 or more, got rtol {rtol} and atol {atol}")
    if a.instance.levels != b.instance.levels:
        raise OptionError(
            f"expected two tables of the same knobs, got {a.instance.name} and {b.instance.name}"
        )
    rows_b = _rows_in(b, a)
    rows_a = np.flatnonzero(rows_b >= 0)
    common = rows_b[rows_a]
    names_a, names_b = a.data.column_names, b.data.column_names
    columns = [
        _compare(name, a.data.column(name), b.data.column(name), (rows_a, common), (rtol, atol))
        for name in names_a
        if name in names_b
    ]
    return TableDifference(
        tuple(name for name in names_a if name not in names_b),
        tuple(name for name in names_b if name not in names_a),
        tuple(a.space.candidates[i] for i in np.flatnonzero(rows_b < 0).tolist()),
        tuple(b.space.candidates[i] for i in np.flatnonzero(_rows_in(a, b) < 0).tolist()),
        bool((np.diff(common) < 0).any()),
        tuple(column for column in columns if len(column.rows_a)),
    )


def _rows_in(table: Table, other: Table) -> IntArray:
    """Row in `table` of each row of `other` (n,); -1 where it has none."""
    encoding = table.instance.encoding
    own, asked = (encoding.codes(t.space.encoded) for t in (table, other))
    return RowIndex(own, encoding.n_codes).rows(asked)


def _compare(
    name: str,
    a: pa.ChunkedArray,
    b: pa.ChunkedArray,
    rows: tuple[IntArray, IntArray],
    tolerances: tuple[float, float],
) -> ColumnDifference:
    a, b = a.take(pa.array(rows[0])), b.take(pa.array(rows[1]))
    if _is_number(a.type) and _is_number(b.type):
        x, y = (values.cast(pa.float64()).to_numpy() for values in (a, b))
        differs, absolute = _numbers_differ(x, y, *tolerances)
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = absolute / np.abs(y)
        largest = tuple(
            float(np.max(d[differs], initial=0.0, where=~np.isnan(d[differs])))
            for d in (absolute, relative)
        )
    else:
        cells = (["" if cell is None else cell for cell in v.to_pylist()] for v in (a, b))
        differs = np.fromiter((x != y for x, y in zip(*cells, strict=True)), np.bool_, len(a))
        largest = ()
    return ColumnDifference(name, rows[0][differs], rows[1][differs], *largest)


def _numbers_differ(
    x: FloatArray, y: FloatArray, rtol: float, atol: float
) -> tuple[BoolArray, FloatArray]:
    with np.errstate(invalid="ignore"):
        absolute = np.abs(x - y)
        close = (absolute <= atol + rtol * np.abs(y)) & np.isfinite(y)
    same = (x == y) | (np.isnan(x) & np.isnan(y)) | close
    return ~same, absolute


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
