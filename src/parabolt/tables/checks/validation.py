"""Checks that a table keeps the schema's promises: one set of checks for reading and verifying.

`validate` stops at the first finding; `Validator` gives them all, block by block, so that a table
need not be in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from parabolt.errors import TableError
from parabolt.outcome import FAILED, OK, OOM, OOM_MARGIN
from parabolt.space.axis import Axis
from parabolt.space.encoding import side_by_side
from parabolt.space.knobs import KNOBS
from parabolt.tables.checks.findings import FindingGroup, where_not
from parabolt.tables.reading.conversion import convert, is_convertible
from parabolt.tables.reading.status import STATUS_WORDS, run_status
from parabolt.tables.schema import known_context, table_columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from parabolt.instances.specs import Instance
    from parabolt.outcome import BoolArray, CodeArray, FloatArray, IntArray
    from parabolt.space.configuration import Configuration
    from parabolt.space.configurations import Configurations
    from parabolt.space.rules import Rule
    from parabolt.tables.reading.conversion import Block

#: Recorded margins are given to eight digits and memory to seven, so they agree this well.
MARGIN_TOLERANCE = 1e-6

#: Margins of eight digits tell a unit this well.
_UNIT_TOLERANCE = 1e-5

#: Factor by which a figure in GB or GiB is off when it was recorded in another unit.
MEMORY_UNITS: dict[str, float] = {
    "GiB": 1e9 / 2**30, "MB": 1e3, "MiB": 1e9 / 2**20, "bytes": 1e9,
}  # fmt: skip


def validate(raw: pa.Table, instance: Instance) -> tuple[pa.Table, Configurations]:
    """Converts a table to the types of the schema and raises at the first contradiction.

    Returns:
        The typed columns, and the configurations of the rows.

    Raises:
        TableError: With row and column, expected and got.
    """
    validator = Validator(raw.schema, instance)
    _raise_first(validator.of_file())
    block = convert(raw, np.arange(raw.num_rows), instance)
    _raise_first(iter(block.findings))
    _raise_first(validator.of_block(block))
    _raise_first(validator.of_whole())
    return block.data, instance.encoding.at(_positions(block.data, instance))


def _raise_first(groups: Iterator[FindingGroup]) -> None:
    for group in groups:
        raise TableError(str(next(iter(group))))


def _positions(data: pa.Table, instance: Instance) -> IntArray:
    """Positions (n, a) of the searched knobs' cells; -1 where one is not listed."""
    axes = instance.encoding.axes
    columns = [axis.positions_in(data.column(axis.column).to_numpy()) for axis in axes]
    return side_by_side(columns, len(data))


class Validator:
    """The checks of one table: the file, then every block, then the whole.

    Args:
        schema: Names and types of the columns.
        instance: The instance that the table is about.
    """

    def __init__(self, schema: pa.Schema, instance: Instance) -> None:
        self._schema = schema
        self._instance = instance
        self._n_rows = 0
        self._codes: list[IntArray] = []
        self._rows: list[IntArray] = []
        self._throughput: list[FloatArray] = []
        usable = {
            column.name
            for column in table_columns(instance)
            if schema.names.count(column.name) == 1
            and is_convertible(schema.field(column.name).type, column)
        }
        self._usable = usable
        self._has_knobs = {axis.column for axis in instance.encoding.axes} <= usable

    def of_file(self) -> Iterator[FindingGroup]:
        """Missing, repeated and untypable columns."""
        names = self._schema.names
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield FindingGroup.of_file("columns", name, "distinct columns", f"{name} twice")
        for column in table_columns(self._instance):
            if column.name not in names:
                if column.required:
                    yield FindingGroup.of_file(
                        "columns", column.name, "the column", f"none; {_among(names)}"
                    )
            elif names.count(column.name) == 1 and column.name not in self._usable:
                kind = str(self._schema.field(column.name).type)
                yield FindingGroup.of_file("type", column.name, column.dtype, kind)

    def of_block(self, block: Block) -> Iterator[FindingGroup]:
        """Everything that a row must meet on its own; cells that weren't converted are passed over.

        Args:
            block: Some rows; each row of the table in one block only.
        """
        self._n_rows += len(block.rows)
        data, rows = block.sound()
        if len(rows):
            for group in self._of_rows(data, rows):
                yield group.at(rows)

    def of_whole(self) -> Iterator[FindingGroup]:
        """What can only be said when all rows have been seen: at least one, and none twice."""
        if self._n_rows == 0:
            yield FindingGroup.of_file("rows", "", "at least one row", "none")
        if self._codes:
            yield from self._repeats()

    @property
    def codes(self) -> IntArray:
        """Codes (n,) of the valid configurations seen so far."""
        return np.concatenate([np.zeros(0, dtype=np.int64), *self._codes])

    def _of_rows(self, data: pa.Table, rows: IntArray) -> Iterator[FindingGroup]:
        if self._has_knobs:
            yield from self._of_configurations(data, rows)
        for name, expected in known_context(self._instance).items():
            if name in self._usable:
                values = data.column(name).to_numpy()
                yield from where_not(
                    values == expected, values, rule="context", column=name,
                    expected=f"{expected} as {self._instance.name} has it",
                )  # fmt: skip
        if {"ran_successfully", "throughput_mean", "peak_mem"} <= self._usable:
            yield from _of_outputs(data, self._instance, self._usable)

    def _of_configurations(self, data: pa.Table, rows: IntArray) -> Iterator[FindingGroup]:
        instance = self._instance
        places = _positions(data, instance)
        for axis, column in zip(instance.encoding.axes, places.T, strict=True):
            yield from where_not(
                column >= 0, data.column(axis.column).to_numpy(),
                rule=f"allowed_{axis.knob.name}", column=axis.column, expected=_one_of(axis),
            )  # fmt: skip
        positions = np.flatnonzero((places >= 0).all(axis=1))
        if len(positions) < len(places):
            data, places = data.take(pa.array(positions)), places[positions]
        configurations = instance.encoding.at(places)
        is_valid = np.ones(len(places), dtype=np.bool_)
        for rule in instance.rules:
            if not rule.name.startswith("allowed_"):
                holds = np.broadcast_to(rule.holds(configurations), is_valid.shape)
                is_valid &= holds
                if not holds.all():
                    yield _broken(rule, configurations, ~holds, instance).at(positions)
        kept = positions[is_valid]
        self._codes.append(instance.encoding.codes_at(places[is_valid]))
        self._rows.append(rows[kept])
        if "throughput_mean" in self._usable:
            self._throughput.append(data.column("throughput_mean").to_numpy()[is_valid])

    def _repeats(self) -> Iterator[FindingGroup]:
        codes, rows = self.codes, np.concatenate(self._rows)
        order = np.argsort(codes, kind="stable")
        is_repeat = np.diff(codes[order]) == 0
        if not is_repeat.any():
            return
        is_first = np.append(True, ~is_repeat)
        firsts = order[np.maximum.accumulate(np.where(is_first, np.arange(len(order)), 0))]
        later = np.flatnonzero(~is_first)
        later = later[np.argsort(order[later])]
        throughput = np.concatenate(self._throughput) if self._throughput else None

        def describe(i: int) -> tuple[str, str]:
            row, first = order[later[i]], firsts[later[i]]
            found = f"{_decode(codes[row], self._instance)} stands in row {rows[first]} already"
            if throughput is not None:
                a, b = throughput[first], throughput[row]
                same = a == b or (np.isnan(a) and np.isnan(b))
                found += " with the same throughput" if same else f", throughput {a} and here {b}"
            return "a configuration of its own", found

        knobs = ", ".join(axis.column for axis in self._instance.encoding.axes)
        yield FindingGroup("distinct", knobs, rows[order[later]], describe)


def _of_outputs(data: pa.Table, instance: Instance, usable: set[str]) -> Iterator[FindingGroup]:
    status = run_status(data)
    feasible = np.equal(status, OK)
    if "status" in usable:
        words = data.column("status").to_pylist()
        pairs = zip(words, status, strict=True)
        known = np.array([STATUS_WORDS.get(word) == code for word, code in pairs], dtype=np.bool_)
        yield from where_not(
            known, data.column("status"), rule="status", column="status",
            expected=lambda i: "ok, as the run finished" if feasible[i] else "oom or failed",
        )  # fmt: skip
    throughput = data.column("throughput_mean").to_numpy()
    peak = data.column("peak_mem").to_numpy()
    for name, values in (("throughput_mean", throughput), ("peak_mem", peak)):
        yield from where_not(
            ~feasible | (np.isfinite(values) & (values > 0)), values,
            rule="measured", column=name, expected="a positive number where the run finished",
        )  # fmt: skip
    yield from where_not(
        feasible | np.isnan(throughput), throughput,
        rule="unmeasured", column="throughput_mean", expected="NaN where the run failed",
    )  # fmt: skip
    failed = np.equal(status, FAILED)
    yield from where_not(
        feasible | np.where(failed, np.isnan(peak), np.isposinf(peak)), peak,
        rule="unmeasured", column="peak_mem",
        expected=lambda i: "NaN where status is failed" if failed[i]
        else "inf where the run ran out of memory",
    )  # fmt: skip
    unit, capacity = instance.peak_mem_column.unit, instance.peak_mem_column.capacity
    yield from where_not(
        ~feasible | (peak < capacity) | ~np.isfinite(peak), peak,
        rule="fits", column="peak_mem",
        expected=f"less than the {capacity:g} {unit} of a GPU where the run finished",
    )  # fmt: skip
    if "peak_mem_normalised" in usable:
        margin = data.column("peak_mem_normalised").to_numpy()
        yield from _of_margins(margin, status, peak, capacity)


def _of_margins(
    margin: FloatArray, status: CodeArray, peak: FloatArray, capacity: float
) -> Iterator[FindingGroup]:
    feasible = np.equal(status, OK)
    with np.errstate(invalid="ignore"):
        expected = np.where(np.equal(status, OOM), OOM_MARGIN, peak / capacity - 1.0)
    agrees = np.abs(margin - expected) <= MARGIN_TOLERANCE
    agrees[np.equal(status, FAILED)] = np.isnan(margin[np.equal(status, FAILED)])
    # A peak that is wrong on its own is reported as such.
    passed_over = feasible & ~(np.isfinite(peak) & (peak > 0) & (peak < capacity))

    def words(i: int) -> str:
        if status[i] == OOM:
            return f"{OOM_MARGIN} where the run ran out of memory"
        if status[i] == FAILED:
            return "NaN where status is failed"
        text = f"{expected[i]:.8g} (peak_mem / {capacity:g} - 1)"
        unit = memory_unit((margin[i] + 1.0) * capacity, peak[i], tolerance=_UNIT_TOLERANCE)
        return f"{text}, which peak_mem in {unit} would give" if unit else text

    yield from where_not(
        passed_over | agrees, margin,
        rule="margin", column="peak_mem_normalised", expected=words,
    )  # fmt: skip


def memory_unit(a: float, b: float, *, tolerance: float) -> str | None:
    """The unit of the one figure if it means the same as the other in GB or GiB; else None."""
    for unit, size in MEMORY_UNITS.items():
        for gb, other in ((a, b), (b, a)):
            if np.isfinite(other) and abs(gb * size - other) <= tolerance * abs(other):
                return unit
    return None


def _one_of(axis: Axis) -> str:
    *most, last = map(str, axis.cells)
    cells = f"{', '.join(most)} or {last}" if most else last
    return f"{cells} ({axis.knob.name} {', '.join(axis.words)})" if axis.has_logarithms else cells


def _among(names: list[str]) -> str:
    return f"the file has {', '.join(names)}"


def _broken(
    rule: Rule, configurations: Configurations, is_broken: BoolArray, instance: Instance
) -> FindingGroup:
    positions = np.flatnonzero(is_broken)

    def describe(i: int) -> tuple[str, str]:
        wrong = configurations[int(positions[i])]
        return "a valid configuration", f"{wrong}: {rule.reason(wrong)}"

    column = {name: Axis(KNOBS[name], values).column for name, values in instance.levels}
    return FindingGroup(
        rule.name, ", ".join(column[name] for name in rule.knobs), positions, describe
    )


def _decode(code: int, instance: Instance) -> Configuration:
    return instance.encoding.from_codes(np.array([code]))[0]
