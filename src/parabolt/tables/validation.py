"""Checks that a table keeps the schema's promises; the first fault is named by row and column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from parabolt.errors import InvalidConfigurationError, TableError
from parabolt.outcome import OOM_MARGIN
from parabolt.space.knobs import ZERO_STAGES
from parabolt.tables.schema import context_values, table_columns

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from parabolt.instances.specs import Instance
    from parabolt.outcome import BoolArray, FloatArray, IntArray
    from parabolt.tables.schema import Dtype

#: Recorded margins are given to eight digits and memory to seven, so they agree this well.
MARGIN_TOLERANCE = 1e-6

_IS_TYPE: dict[Dtype, Callable[[pa.DataType], bool]] = {
    "int64": pa.types.is_integer,
    "float64": pa.types.is_floating,
    "bool": pa.types.is_boolean,
    "string": lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind),
}


def validate(data: pa.Table, instance: Instance) -> IntArray:
    """Raises at the first contradiction between a table, the schema and its instance.

    Returns:
        The encoded levels of the searched knobs, (n, d) int64.

    Raises:
        TableError: With row and column, expected and got.
    """
    _check_columns(data, instance)
    levels = _encoded_levels(data, instance)
    _check_configurations(levels, instance)
    _check_context(data, instance)
    _check_outputs(data, instance)
    return levels


def _check_columns(data: pa.Table, instance: Instance) -> None:
    if data.num_rows == 0:
        raise TableError("expected at least one row, got none")
    names = data.column_names
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise TableError(f"expected distinct columns, got {', '.join(twice)} more than once")
    for column in table_columns(instance):
        if column.name not in names:
            if column.required:
                raise TableError(f"column {column.name} is missing; got {', '.join(names)}")
            continue
        kind, values = data.schema.field(column.name).type, data.column(column.name)
        if not _IS_TYPE[column.dtype](kind):
            raise TableError(f"column {column.name}: expected {column.dtype}, got {kind}")
        if column.dtype != "string" and column.nan is None and values.null_count:
            row = values.is_null().to_pylist().index(True)
            raise TableError(f"row {row}, column {column.name}: expected a value, got none")


def _encoded_levels(data: pa.Table, instance: Instance) -> IntArray:
    columns = []
    for knob in instance.encoding.knobs:
        values = data.column(knob.column).to_numpy().astype(np.int64)
        if not knob.is_log2:
            _expect(np.isin(values, ZERO_STAGES), knob.column, "0, 2 or 3", values)
            values = np.searchsorted(ZERO_STAGES, values)
        columns.append(values)
    return np.stack(columns, axis=1)


def _check_configurations(levels: IntArray, instance: Instance) -> None:
    encoding = instance.encoding
    codes = encoding.codes(levels)
    valid = codes >= 0
    sizes = encoding.sizes(levels)
    for rule in instance.rules:
        valid &= rule.holds(sizes)
    if not valid.all():
        row = int(np.argmin(valid))
        try:
            instance.check(encoding.decode(levels[row : row + 1])[0])
        except InvalidConfigurationError as error:
            raise TableError(f"row {row}: {error}") from error
    order = np.argsort(codes, kind="stable")
    repeats = order[1:][np.diff(codes[order]) == 0]
    if len(repeats):
        row = int(repeats.min())
        first = int(np.argmax(codes == codes[row]))
        raise TableError(
            f"row {row}: {encoding.decode(levels[row : row + 1])[0]} stands in row {first} already"
        )


def _check_context(data: pa.Table, instance: Instance) -> None:
    for name, expected in context_values(instance).items():
        if name in data.column_names:
            values = data.column(name).to_numpy()
            _expect(values == expected, name, f"{expected} as {instance.name} has it", values)


def _check_outputs(data: pa.Table, instance: Instance) -> None:
    feasible = data.column("ran_successfully").to_numpy().astype(bool)
    throughput = data.column("throughput_mean").to_numpy()
    _expect(
        ~feasible | (np.isfinite(throughput) & (throughput > 0)),
        "throughput_mean", "a positive number where the run finished", throughput,
    )  # fmt: skip
    _expect(
        feasible | np.isnan(throughput), "throughput_mean", "NaN where the run failed", throughput
    )
    peak = data.column("peak_mem").to_numpy()
    _expect(
        ~feasible | (np.isfinite(peak) & (peak > 0)),
        "peak_mem", "a positive number where the run finished", peak,
    )  # fmt: skip
    _expect(feasible | np.isposinf(peak), "peak_mem", "inf where the run failed", peak)
    if "peak_mem_normalised" in data.column_names:
        _check_margins(data, instance, feasible, peak)


def _check_margins(
    data: pa.Table, instance: Instance, feasible: BoolArray, peak: FloatArray
) -> None:
    name, capacity = "peak_mem_normalised", instance.cluster.memory_gb
    margin = data.column(name).to_numpy()
    expected = np.where(feasible, peak / capacity - 1.0, OOM_MARGIN)
    wrong = ~(np.abs(margin - expected) <= MARGIN_TOLERANCE)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise TableError(
            f"row {row}, column {name}: expected {expected[row]:.8g} "
            f"(peak_mem / {capacity:g} - 1, or {OOM_MARGIN} where the run failed), "
            f"got {margin[row]:.8g}"
        )


def _expect(holds: BoolArray, column: str, expected: str, values: npt.NDArray[Any]) -> None:
    if not holds.all():
        row = int(np.argmin(holds))
        raise TableError(f"row {row}, column {column}: expected {expected}, got {values[row]}")
