"""From the text of a raw sweep export to typed columns, without changing a value."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from parabolt.errors import TableError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from parabolt.tables.schema import Column

_TRUE, _FALSE = ("true", "1"), ("false", "0")


def read_csv(path: Path, columns: Sequence[Column]) -> pa.Table:
    """Reads a CSV export into typed columns; columns that the schema doesn't know stay texts.

    Args:
        path: The file: UTF-8, with or without a byte-order mark.
        columns: The schema.

    Raises:
        TableError: If the file can't be read, or a cell isn't of its column's type.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = next(csv.reader(file), [])
        texts = pa.csv.read_csv(
            path,
            parse_options=pa.csv.ParseOptions(newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(
                column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=False
            ),
        )
    except (OSError, UnicodeDecodeError, pa.ArrowInvalid, csv.Error) as error:
        raise TableError(f"cannot read {path}: {error}") from error
    known = {column.name: column for column in columns}
    return pa.table(
        {
            name: _typed(texts.column(name), known[name]) if name in known else texts.column(name)
            for name in texts.column_names
        }
    )


def _typed(texts: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    if column.dtype == "string":
        return texts
    texts = pc.utf8_trim_whitespace(texts)
    if column.dtype == "bool":
        return _booleans(texts, column)
    if column.nan is not None:
        texts = pc.if_else(pc.equal(texts, ""), "nan", texts)
    numbers = _floats(texts, column)
    return numbers if column.dtype == "float64" else _whole(numbers, column)


def _floats(texts: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    try:
        return texts.cast(pa.float64())
    except pa.ArrowInvalid:
        for row, text in enumerate(texts.to_pylist()):
            try:
                pa.scalar(text).cast(pa.float64())
            except pa.ArrowInvalid as error:
                raise TableError(
                    f"row {row}, column {column.name}: expected a number, got {text!r}"
                ) from error
        raise


def _whole(numbers: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    try:
        return numbers.cast(pa.int64())
    except pa.ArrowInvalid as error:
        values = numbers.to_numpy()
        row = next(i for i, v in enumerate(values) if not float(v).is_integer())
        raise TableError(
            f"row {row}, column {column.name}: expected a whole number, got {values[row]}"
        ) from error


def _booleans(texts: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    lower = pc.utf8_lower(texts)
    is_true = pc.is_in(lower, pa.array(_TRUE))
    known = pc.or_(is_true, pc.is_in(lower, pa.array(_FALSE)))
    if not pc.all(known, min_count=0).as_py():
        row = known.to_pylist().index(False)
        raise TableError(
            f"row {row}, column {column.name}: expected True or False, got {texts[row].as_py()!r}"
        )
    return is_true
