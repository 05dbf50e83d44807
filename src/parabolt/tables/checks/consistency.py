"""Checks that the auxiliary columns agree with each other: step times, memory per GPU, wall clock.

What a sweep's summary figures are is not on the cards, so a row passes if any of the usual
definitions gives them. Symbols: t the step times of a run in seconds, of its m timed steps.

- Which steps: all; all but the first, which warms up; or those without outliers, further than two
  interquartile ranges from the median.
- `throughput_mean`: 1 / mean(t), or mean(1 / t).
- `throughput_std`: the spread of the rate, std(1 / t), or to first order std(t) / mean(t)^2; of one
  step, or of the mean (divided by sqrt(m)); with m or m - 1 degrees of freedom.

OPPA, a public sweep tool that writes these very columns, drops the first step and the outliers, and
records 1 / mean(t) and std(t) / sqrt(m) / mean(t)^2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parabolt.tables.checks.findings import where_not
from parabolt.tables.checks.repeats import check_repeats
from parabolt.tables.checks.validation import memory_unit
from parabolt.tables.reading.number_lists import parse_number_lists

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from parabolt.outcome import BoolArray, FloatArray, IntArray
    from parabolt.tables.checks.findings import FindingGroup
    from parabolt.tables.reading.conversion import Block

#: Lists and summaries may be rounded to some digits, each on its own.
MEAN_TOLERANCE = 1e-4
STD_TOLERANCE = 1e-2
PEAK_TOLERANCE = 1e-6

#: How far, in interquartile ranges, a step may be from the median.
_OUTLIER_RANGES = 2.0
_MS_PER_S = 1000.0
#: All steps, or all but the first; with outliers or without.
_N_CHOICES = 4
#: Steps and wall clock are timed by different programs. Only a wrong unit is looked for: minutes
#: for seconds, a factor of 60, of a run that took up to twice its steps.
_LEAST_OVERALL = 1 / 30


def check_consistency(block: Block) -> Iterator[FindingGroup]:
    """The findings of one block; a column that isn't there is not checked.

    Args:
        block: Converted rows; those with findings are passed over.
    """
    data, rows = block.sound()
    if len(rows) == 0 or not {"ran_successfully", "throughput_mean"} <= set(data.column_names):
        return
    feasible = np.asarray(data.column("ran_successfully").to_numpy(), dtype=np.bool_)
    for check in (_check_wall_time, _check_spread, _check_steps, _check_memory_per_gpu):
        for group in check(data, feasible):
            yield group.at(rows)
    for group in check_repeats(data):
        yield group.at(rows)


def _check_wall_time(data: pa.Table, feasible: BoolArray) -> Iterator[FindingGroup]:
    smallest_positive = float(np.nextafter(0.0, 1.0))
    yield from _check_measured(data, "overall_time", feasible, minimum=smallest_positive)


def _check_spread(data: pa.Table, feasible: BoolArray) -> Iterator[FindingGroup]:
    yield from _check_measured(data, "throughput_std", feasible, minimum=0.0)


def _check_measured(
    data: pa.Table, name: str, feasible: BoolArray, *, minimum: float
) -> Iterator[FindingGroup]:
    if name not in data.column_names:
        return
    values = data.column(name).to_numpy()
    kind = "number, 0 or more," if minimum == 0.0 else "positive number"
    yield from where_not(
        ~feasible | (np.isfinite(values) & (values >= minimum)), values,
        rule="measured", column=name, expected=f"a {kind} where the run finished",
    )  # fmt: skip
    yield from where_not(
        feasible | np.isnan(values), values,
        rule="unmeasured", column=name, expected="NaN where the run failed",
    )  # fmt: skip


def _check_steps(data: pa.Table, feasible: BoolArray) -> Iterator[FindingGroup]:
    name = "all_time_steps"
    if name not in data.column_names:
        return
    lists = parse_number_lists(data.column(name))
    yield from where_not(
        lists.is_list | (lists.is_blank & ~feasible), data.column(name),
        rule="list", column=name, expected="a list of step times in seconds, such as [2.31, 2.29]",
    )  # fmt: skip
    steps = _Steps(len(data))
    for at, t in lists.by_length(feasible):
        steps.add(at, t)
    yield from where_not(
        steps.are_positive, data.column(name),
        rule="steps", column=name, expected="positive, finite step times",
    )  # fmt: skip
    for column, values in (("throughput_mean", steps.rates), ("throughput_std", steps.spreads)):
        if column in data.column_names:
            found = data.column(column).to_numpy()
            tolerance = MEAN_TOLERANCE if column == "throughput_mean" else STD_TOLERANCE
            yield from where_not(
                ~np.isfinite(found) | _is_among(found, values, tolerance) | ~steps.are_positive,
                found, rule="steps", column=column, expected=_Expected(found, values),
            )  # fmt: skip
    if "overall_time" in data.column_names:
        overall_s = data.column("overall_time").to_numpy()
        yield from where_not(
            ~(overall_s < steps.total_s * _LEAST_OVERALL), overall_s,
            rule="wall_clock", column="overall_time",
            expected=lambda i: f"about the {steps.total_s[i]:.6g} s of its steps, or more",
        )  # fmt: skip


class _Steps:
    """What the step times of n runs give; NaN where a run has none.

    Attributes:
        are_positive: Whether all steps are positive and finite, (n,) bool.
        total_s: Sum of the steps, (n,).
        rates: Throughput by each definition, (n, p).
        spreads: Spread of the throughput by each definition, (n, q).
    """

    def __init__(self, n: int) -> None:
        self.are_positive = np.ones(n, dtype=np.bool_)
        self.total_s = np.full(n, np.nan)
        self.rates = np.full((n, _N_CHOICES * 2), np.nan)
        self.spreads = np.full((n, _N_CHOICES * 8), np.nan)

    def add(self, at: IntArray, t: FloatArray) -> None:
        """Runs at positions (k,) with m steps each, t (k, m)."""
        is_positive = (np.isfinite(t) & (t > 0)).all(axis=1)
        self.are_positive[at] = is_positive
        at, t = at[is_positive], t[is_positive]
        if len(at) == 0:
            return
        self.total_s[at] = t.sum(axis=1)
        warm = np.ones(t.shape, dtype=np.bool_)
        warm[:, 0] = t.shape[1] == 1
        every = np.ones(t.shape, dtype=np.bool_)
        choices = (_without_outliers(t, warm), warm, _without_outliers(t, every), every)
        with np.errstate(all="ignore"):
            moments = [_moments(t, is_timed) for is_timed in choices]
        self.rates[at] = np.concatenate([rates for rates, _ in moments], axis=1)
        self.spreads[at] = np.concatenate([spreads for _, spreads in moments], axis=1)


def _without_outliers(t: FloatArray, is_timed: BoolArray) -> BoolArray:
    times = t[:, 1:] if not is_timed[0, 0] else t
    low, median, high = np.quantile(times, (0.25, 0.5, 0.75), axis=1)[:, :, None]
    is_near: BoolArray = np.abs(t - median) <= _OUTLIER_RANGES * (high - low)
    return is_timed & is_near


def _moments(t: FloatArray, is_timed: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Rates (k, 2) and spreads (k, 8) of runs with steps t (k, m), over the timed ones."""
    m = is_timed.sum(axis=1)
    time, rate = _mean_and_variance(t, is_timed), _mean_and_variance(1.0 / t, is_timed)
    spreads = [
        np.sqrt(variance * m / freedom / n)
        for variance in (time[1] / time[0] ** 4, rate[1])
        for freedom in (m, m - 1)
        for n in (m, 1)
    ]
    return np.stack([1.0 / time[0], rate[0]], axis=1), np.stack(spreads, axis=1)


def _mean_and_variance(values: FloatArray, chosen: BoolArray) -> tuple[FloatArray, FloatArray]:
    n = chosen.sum(axis=1)
    mean = np.where(chosen, values, 0.0).sum(axis=1) / n
    square = np.where(chosen, values - mean[:, None], 0.0) ** 2
    return mean, square.sum(axis=1) / n


def _is_among(found: FloatArray, values: FloatArray, tolerance: float) -> BoolArray:
    """Whether figures (n,) agree with any of the values (n, p); also where there is none."""
    close = np.abs(values - found[:, None]) <= tolerance * np.abs(found)[:, None]
    return np.asarray(close.any(axis=1) | np.isnan(values).all(axis=1), dtype=np.bool_)


class _Expected:
    """What the steps give for a figure, in words; called with a position."""

    def __init__(self, found: FloatArray, values: FloatArray) -> None:
        self._found, self._values = found, values

    def __call__(self, i: int) -> str:
        value = self._values[i][np.isfinite(self._values[i])][0]
        text = f"about {value:.6g} iterations/s, as its steps give"
        for found, expected in ((self._found[i], value), (value, self._found[i])):
            if abs(found - _MS_PER_S * expected) < STD_TOLERANCE * abs(found):
                return f"{text} in seconds (one of the two is in milliseconds)"
        return text


def _check_memory_per_gpu(data: pa.Table, feasible: BoolArray) -> Iterator[FindingGroup]:
    name = "peak_mem_per_gpu"
    if not {name, "peak_mem"} <= set(data.column_names):
        return
    lists = parse_number_lists(data.column(name))
    yield from where_not(
        lists.is_list | (lists.is_blank & ~feasible), data.column(name),
        rule="list", column=name, expected="a list of peak memories, such as [41.2, 41.4]",
    )  # fmt: skip
    peak = data.column("peak_mem").to_numpy()
    largest = peak.copy()
    for at, memory in lists.by_length(np.ones(len(data), dtype=np.bool_)):
        largest[at] = memory.max(axis=1)
    agrees = largest == peak
    finite = np.isfinite(peak) & np.isfinite(largest)
    agrees[finite] |= np.isclose(largest[finite], peak[finite], rtol=PEAK_TOLERANCE, atol=0.0)

    def words(i: int) -> str:
        text = f"{peak[i]:.8g} (peak_mem) as the largest"
        unit = memory_unit(largest[i], peak[i], tolerance=PEAK_TOLERANCE)
        return f"{text}; one of the two is in {unit}" if unit else text

    comparable = ~feasible | (np.isfinite(peak) & (peak > 0))
    yield from where_not(
        agrees | ~comparable, data.column(name), rule="largest", column=name, expected=words
    )
