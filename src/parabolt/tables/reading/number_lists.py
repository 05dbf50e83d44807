"""Columns of lists of numbers written as texts, such as `[2.31, 2.29]`: all rows at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from parabolt.outcome import BoolArray, FloatArray, IntArray

_LIST = r"^\s*\[[^\[\]]*\]\s*$"


@dataclass(frozen=True, eq=False)
class NumberLists:
    """The numbers of n texts.

    Attributes:
        is_blank: Whether a text is missing, blank, `nan` or an empty list, (n,) bool.
        is_list: Whether a text is a list of at least one number, (n,) bool.
        lengths: Numbers in each list, (n,) int64; 0 where there is none.
        numbers: The numbers of all lists, one after the other, float64.
    """

    is_blank: BoolArray
    is_list: BoolArray
    lengths: IntArray
    numbers: FloatArray

    def by_length(self, rows: BoolArray) -> Iterator[tuple[IntArray, FloatArray]]:
        """The chosen rows that have a list, as rectangular arrays.

        Args:
            rows: Which rows, (n,) bool.

        Yields:
            Positions (k,) of the rows whose lists have m numbers, and these numbers (k, m).
        """
        starts = np.cumsum(self.lengths) - self.lengths
        chosen = rows & self.is_list
        for length in np.unique(self.lengths[chosen]):
            positions = np.flatnonzero(chosen & (self.lengths == length))
            yield positions, self.numbers[starts[positions][:, None] + np.arange(length)]


def parse_number_lists(texts: pa.ChunkedArray) -> NumberLists:
    """Parses texts (n,) in brackets with commas; NaN and inf are numbers here."""
    texts = texts.combine_chunks().fill_null("")
    trimmed = pc.utf8_trim(texts, characters="[] \t\r\n")
    is_blank = pc.is_in(pc.utf8_lower(trimmed), pa.array(["", "nan"]))
    looks_like_list = pc.and_not(pc.match_substring_regex(texts, _LIST), pc.equal(trimmed, ""))
    inner = pc.if_else(looks_like_list, trimmed, None)
    parts = pc.split_pattern(inner, ",")
    counts = pc.list_value_length(parts).fill_null(0).to_numpy(zero_copy_only=False)
    cells = pc.utf8_trim_whitespace(pc.list_flatten(parts))
    try:
        numbers = cells.cast(pa.float64()).to_numpy(zero_copy_only=False)
        is_number = np.ones(len(numbers), dtype=np.bool_)
    except pa.ArrowInvalid:
        numbers, is_number = _numbers_one_by_one(cells)
    owners = np.repeat(np.arange(len(texts)), counts)
    is_list = np.array(looks_like_list.to_numpy(zero_copy_only=False), dtype=np.bool_)
    is_list[owners[~is_number]] = False
    return NumberLists(
        np.asarray(is_blank.to_numpy(zero_copy_only=False), dtype=np.bool_) & ~is_list,
        is_list,
        np.where(is_list, counts, 0).astype(np.int64),
        numbers[is_list[owners]],
    )


def _numbers_one_by_one(cells: pa.Array) -> tuple[FloatArray, BoolArray]:
    numbers = np.full(len(cells), np.nan)
    is_number = np.zeros(len(cells), dtype=np.bool_)
    for i, cell in enumerate(cells.to_pylist()):
        try:
            numbers[i] = float(cell)
        except ValueError:
            continue
        is_number[i] = True
    return numbers, is_number
