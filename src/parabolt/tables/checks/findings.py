"""Findings: what is wrong with a table, each with row, column, expected and found.

A `FindingGroup` holds all rows that break one rule in one column as one array, so that a table of
ten million rows costs no more per rule than a small one; single `Finding` values are made when
somebody looks at them. Rows count from 0, the first after the header.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy.typing as npt

    from parabolt.outcome import BoolArray, IntArray

#: Characters of a text that are shown of what was found.
_LONGEST_TEXT = 60


@dataclass(frozen=True)
class Finding:
    """One contradiction.

    Attributes:
        row: Row number from 0; None where the whole file or its card is meant.
        column: Column, or columns separated by commas; empty where the whole row is meant.
        expected: What should stand there, in words.
        found: What stands there.
        rule: Short name of the rule that is broken.
    """

    row: int | None
    column: str
    expected: str
    found: str
    rule: str

    def __str__(self) -> str:
        row = "" if self.row is None else f"row {self.row}"
        column = f"column {self.column}" if self.column and "," not in self.column else ""
        where = ", ".join(filter(None, (row, column)))
        return f"{where}{': ' if where else ''}expected {self.expected}, got {self.found}"


@dataclass(frozen=True, eq=False)
class FindingGroup:
    """All rows (k,) that break one rule in one column.

    Attributes:
        rule: Short name of the rule.
        column: Column, or columns separated by commas.
        rows: Row numbers (k,) int64; None for a finding about the file as a whole.
        describe: Expected and found, in words, of the i-th of the rows.
    """

    rule: str
    column: str
    rows: IntArray | None
    describe: Callable[[int], tuple[str, str]]

    def __len__(self) -> int:
        return 1 if self.rows is None else len(self.rows)

    def __iter__(self) -> Iterator[Finding]:
        for i in range(len(self)):
            row = None if self.rows is None else int(self.rows[i])
            yield Finding(row, self.column, *self.describe(i), self.rule)

    def at(self, rows: IntArray) -> FindingGroup:
        """The same findings, whose row numbers were positions in `rows`."""
        return self if self.rows is None else replace(self, rows=rows[self.rows])

    @classmethod
    def of_file(cls, rule: str, column: str, expected: str, found: str) -> FindingGroup:
        """A finding about the file or its card."""
        return cls(rule, column, None, lambda _: (expected, found))


class TableFindings:
    """All findings of a verification, in the order in which the checks were made."""

    def __init__(self, groups: Iterable[FindingGroup]) -> None:
        self.groups = tuple(groups)

    def __len__(self) -> int:
        return sum(map(len, self.groups))

    def __iter__(self) -> Iterator[Finding]:
        for group in self.groups:
            yield from group

    def first(self, n: int) -> list[Finding]:
        """The first `n` findings, without making the others."""
        return list(islice(self, n))

    def counts(self) -> dict[tuple[str, str], int]:
        """Number of findings per rule and column."""
        counts: dict[tuple[str, str], int] = {}
        for group in self.groups:
            key = group.rule, group.column
            counts[key] = counts.get(key, 0) + len(group)
        return counts


def where_not(
    holds: BoolArray,
    values: npt.NDArray[Any] | pa.ChunkedArray,
    *,
    rule: str,
    column: str,
    expected: str | Callable[[int], str],
) -> Iterator[FindingGroup]:
    """The rows at which a condition doesn't hold, as at most one group.

    Args:
        holds: The condition (n,).
        values: What stands there (n,).
        rule: Name of the rule.
        column: Column at fault.
        expected: What should stand there: the same words for every row, or by position in (n,).
    """
    if holds.all():
        return
    wrong = np.flatnonzero(~holds)
    found = values[wrong] if isinstance(values, np.ndarray) else values.take(pa.array(wrong))

    def describe(i: int) -> tuple[str, str]:
        words = expected if isinstance(expected, str) else expected(int(wrong[i]))
        return words, _in_words(found[i])

    yield FindingGroup(rule, column, wrong, describe)


def _in_words(value: Any) -> str:
    if isinstance(value, pa.Scalar):
        text = "" if value.as_py() is None else str(value)
        return repr(text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + "...")
    return str(value)
