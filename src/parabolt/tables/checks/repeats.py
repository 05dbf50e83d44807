"""Checks of configurations that were run several times: figures are medians, contradictions marked.

A list such as `throughput_repeats` has one number for each run, NaN where that run did not finish.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parabolt.tables.checks.findings import where_not
from parabolt.tables.reading.number_lists import parse_number_lists

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from parabolt.outcome import BoolArray, FloatArray
    from parabolt.tables.checks.findings import FindingGroup
    from parabolt.tables.reading.number_lists import NumberLists

#: Column with a list of each run's figure, and the column with their median.
_LISTS = {"throughput_repeats": "throughput_mean", "peak_mem_repeats": "peak_mem"}
_MARK = "is_contradictory"
MEDIAN_TOLERANCE = 1e-6


def check_repeats(data: pa.Table) -> Iterator[FindingGroup]:
    """The findings of converted rows; rows count from 0 within them."""
    is_contradictory = np.zeros(len(data), dtype=np.bool_)
    for name, figure in _LISTS.items():
        if name in data.column_names and figure in data.column_names:
            lists = parse_number_lists(data.column(name))
            yield from where_not(
                lists.is_list | lists.is_blank, data.column(name),
                rule="list", column=name, expected="a list of numbers, such as [0.31, nan]",
            )  # fmt: skip
            medians, differ = _summaries(lists)
            is_contradictory |= differ
            yield from _of_medians(medians, data.column(figure).to_numpy(), figure)
    if _MARK in data.column_names:
        marked = np.asarray(data.column(_MARK).to_numpy(), dtype=np.bool_)
        yield from where_not(
            marked == is_contradictory, marked, rule="contradiction", column=_MARK,
            expected="true where some runs finished and some not, and only there",
        )  # fmt: skip


def _summaries(lists: NumberLists) -> tuple[FloatArray, BoolArray]:
    """Median of the runs that finished (n,), NaN if none; whether some finished and some not."""
    n = len(lists.is_list)
    medians, differ = np.full(n, np.nan), np.zeros(n, dtype=np.bool_)
    for at, runs in lists.by_length(lists.is_list):
        finished = np.isfinite(runs)
        some = finished.any(axis=1)
        differ[at] = some & ~finished.all(axis=1)
        medians[at[some]] = np.nanmedian(np.where(finished, runs, np.nan)[some], axis=1)
    return medians, differ


def _of_medians(medians: FloatArray, found: FloatArray, figure: str) -> Iterator[FindingGroup]:
    close = np.abs(medians - found) <= MEDIAN_TOLERANCE * np.abs(found)
    yield from where_not(
        close | np.isnan(medians), found, rule="median", column=figure,
        expected=lambda i: f"{medians[i]:.8g}, the median of its runs that finished",
    )  # fmt: skip
