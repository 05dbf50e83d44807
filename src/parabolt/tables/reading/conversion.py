"""From raw columns to the types of the schema, without changing a value.

What can't be converted becomes null and a finding; such rows are left out of the other checks, so
that one fault is one finding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parabolt.tables.checks.findings import FindingGroup
from parabolt.tables.schema import table_columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from parabolt.instances.specs import Instance
    from parabolt.outcome import BoolArray, IntArray
    from parabolt.tables.schema import Column

#: Whatever Arrow may read as a number; it has the last word.
_NUMBER = r"^[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|(?i:inf(inity)?|nan(\(\w*\))?))$"
_TRUE, _FALSE = ["true", "1"], ["false", "0"]
#: float64 holds every whole number up to here.
_LARGEST_WHOLE = 2.0**53


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of a table in the types of the schema.

    Attributes:
        data: Columns; those that the schema doesn't know are as the file has them, and those whose
            type can't be that of the schema are left out.
        rows: Row numbers (n,) int64.
        is_sound: Whether all cells of each row could be converted, (n,) bool.
        findings: The cells that could not.
    """

    data: pa.Table
    rows: IntArray
    is_sound: BoolArray
    findings: tuple[FindingGroup, ...]

    def sound(self) -> tuple[pa.Table, IntArray]:
        """The rows all of whose cells could be converted, and their numbers."""
        if self.is_sound.all():
            return self.data, self.rows
        return self.data.filter(pa.array(self.is_sound)), self.rows[self.is_sound]


def convert(raw: pa.Table, rows: IntArray, instance: Instance) -> Block:
    """Converts the columns that the schema knows; the others stay as they are.

    Args:
        raw: Raw columns with distinct names.
        rows: Row numbers (n,) int64.
        instance: The instance, which says what the columns are.
    """
    known = {column.name: column for column in table_columns(instance)}
    columns: dict[str, pa.ChunkedArray] = {}
    findings: list[FindingGroup] = []
    is_sound = np.ones(raw.num_rows, dtype=np.bool_)
    for name, values in zip(raw.column_names, raw.columns, strict=True):
        if name not in known:
            columns[name] = values
        elif is_convertible(values.type, known[name]):
            columns[name], groups = _typed(values, known[name])
            for group in groups:
                is_sound[group.rows] = False
                findings.append(group.at(rows))
    return Block(pa.table(columns), rows, is_sound, tuple(findings))


def is_convertible(kind: pa.DataType, column: Column) -> bool:
    """Whether a column of that type can hold what the schema wants."""
    if _is_text(kind):
        return True
    if column.dtype == "string":
        return bool(pa.types.is_null(kind))
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    is_bool = column.dtype == "bool" and pa.types.is_boolean(kind)
    return bool(is_number or is_bool or pa.types.is_null(kind))


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _typed(values: pa.ChunkedArray, column: Column) -> tuple[pa.ChunkedArray, list[FindingGroup]]:
    raw = values
    if pa.types.is_dictionary(values.type) or pa.types.is_large_string(values.type):
        values = values.cast(pa.string())
    if column.dtype == "string":
        return values.cast(pa.string()), []
    if column.dtype == "bool":
        typed = _booleans(values)
    elif column.dtype == "int64":
        typed = _whole_numbers(values)
    else:
        typed = _numbers(values)
    if typed.null_count == 0:
        return typed, []
    bad = np.array(typed.is_null().to_numpy())
    if column.nan is not None:  # a blank is NaN there
        bad &= ~_is_blank(values)
    return typed, list(_cells(bad, raw, column))


def _cells(bad: BoolArray, raw: pa.ChunkedArray, column: Column) -> Iterator[FindingGroup]:
    positions = np.flatnonzero(bad)
    if len(positions):
        found = raw.take(pa.array(positions))
        yield FindingGroup(
            "type", column.name, positions, lambda i: _in_words(column, found[i].as_py())
        )


def _in_words(column: Column, value: Any) -> tuple[str, str]:
    is_number = _is_number(value)
    if column.dtype == "bool":
        expected = "True or False"
    elif column.dtype == "int64" and is_number:
        expected = "a whole number"
    else:
        expected = "a number"
    return expected, str(value).strip() if is_number else repr("" if value is None else value)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _booleans(values: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_boolean(values.type):
        return values
    if _is_text(values.type):
        lower = pc.utf8_lower(pc.utf8_trim_whitespace(values))
        is_true, is_false = (pc.is_in(lower, pa.array(words)) for words in (_TRUE, _FALSE))
    else:
        is_true, is_false = pc.equal(values, 1), pc.equal(values, 0)
    return pc.if_else(pc.or_(is_true, is_false), is_true, None)


def _whole_numbers(values: pa.ChunkedArray) -> pa.ChunkedArray:
    if values.type == pa.int64():
        return values
    numbers = _numbers(values)
    is_whole = pc.and_(
        pc.equal(pc.floor(numbers), numbers), pc.less_equal(pc.abs(numbers), _LARGEST_WHOLE)
    )
    return pc.if_else(is_whole, numbers, None).cast(pa.int64())


def _numbers(values: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_integer(values.type):
        bound = pa.scalar(int(_LARGEST_WHOLE), values.type) if values.type.bit_width == 64 else None
        if bound is not None:  # beyond it float64 would round
            values = pc.if_else(pc.less_equal(pc.abs(values), bound), values, None)
        return values.cast(pa.float64())
    if not _is_text(values.type):
        return values.cast(pa.float64())
    try:
        return values.cast(pa.float64())
    except pa.ArrowInvalid:
        texts = pc.utf8_trim_whitespace(values)
        texts = pc.if_else(pc.match_substring_regex(texts, _NUMBER), texts, None)
        texts = pc.if_else(_fails_to_cast(texts), None, texts)
        return texts.cast(pa.float64())


def _fails_to_cast(texts: pa.ChunkedArray) -> BoolArray:
    """Whether each text (n,) is no number, found by halving, since Arrow doesn't say which.

    Slow where many are not, hence only for texts that look like numbers.
    """
    try:
        texts.cast(pa.float64())
    except pa.ArrowInvalid:
        if len(texts) == 1:
            return np.ones(1, dtype=np.bool_)
        half = len(texts) // 2
        return np.concatenate([_fails_to_cast(texts[:half]), _fails_to_cast(texts[half:])])
    return np.zeros(len(texts), dtype=np.bool_)


def _is_blank(values: pa.ChunkedArray) -> BoolArray:
    is_null = values.is_null()
    if _is_text(values.type):
        is_null = pc.or_kleene(is_null, pc.equal(pc.utf8_trim_whitespace(values), ""))
    return np.asarray(is_null.to_numpy(), dtype=np.bool_)
