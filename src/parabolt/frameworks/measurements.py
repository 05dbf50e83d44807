"""What a program's report or log says of its steps and its memory, as it comes in."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

#: Latest step that the log of a fresh run begins with: DeepSpeed's timer leaves out two. A log that
#: begins later belongs to a run that goes on from a checkpoint.
_LATEST_START = 3


class ReportError(Exception):
    """A report that says nothing certain; the trial has failed, and the search goes on."""


@dataclass
class Measurements:
    """Steps and memory as they come in.

    Attributes:
        is_log: Whether they come from a log and not from the protocol. A log counts steps from 0 or
            1, and may print every n-th one: its figure then is the mean of those since the last.
        step_times_s: Step number to seconds. Of several ranks that report a step the slowest
            counts: the step is over when all are.
        peak_memory_gib: Rank to its largest peak memory so far, in GiB (2^30 bytes).
        memory_lines: Rank to the line that gave that peak.
    """

    is_log: bool = False
    step_times_s: dict[int, float] = field(default_factory=dict)
    peak_memory_gib: dict[int, float] = field(default_factory=dict)
    memory_lines: dict[int, str] = field(default_factory=dict)
    #: Step number to how many steps its figure is the mean of, where the program says so.
    _n_steps: dict[int, int] = field(default_factory=dict)
    _reported: set[tuple[int, int]] = field(default_factory=set)

    def add_step(self, step: int, seconds: float, rank: int = 0) -> None:
        """Records a step of the protocol.

        Raises:
            ReportError: If the same rank reports a step twice, or the time isn't positive.
        """
        if (step, rank) in self._reported:
            raise ReportError(
                f"rank {rank} reported step {step} twice: did the program restart itself?"
            )
        self._reported.add((step, rank))
        self.add_mean(step, seconds)

    def add_mean(self, step: int, seconds: float, n_steps: int | None = None) -> None:
        """Records the mean time of the steps up to `step`; of several figures the largest counts.

        Args:
            step: Number of the last of the steps.
            seconds: Their mean time in seconds.
            n_steps: How many they are; None for all since the step that was recorded before.

        Raises:
            ReportError: If the time isn't positive.
        """
        if not 0.0 < seconds < math.inf:
            raise ReportError(f"step {step}: expected positive seconds, got {seconds}")
        self.step_times_s[step] = max(seconds, self.step_times_s.get(step, 0.0))
        if n_steps is not None:
            self._n_steps[step] = n_steps

    def add_memory(self, rank: int, peak_memory_gib: float, line: str = "") -> None:
        """Records the peak memory of a rank in GiB, and the line that says it.

        Raises:
            ReportError: If it isn't a positive number.
        """
        if not 0.0 < peak_memory_gib < math.inf:
            raise ReportError(
                f"rank {rank}: expected a positive peak memory, got {peak_memory_gib}"
            )
        if peak_memory_gib > self.peak_memory_gib.get(rank, 0.0):
            self.peak_memory_gib[rank] = peak_memory_gib
            self.memory_lines[rank] = line

    def merge(self, other: Measurements) -> None:
        """Takes over what `other` has; where both have a figure the larger one counts."""
        self.is_log |= other.is_log
        for step, seconds in other.step_times_s.items():
            self.add_mean(step, seconds, other._n_steps.get(step))
        for rank, gib in other.peak_memory_gib.items():
            self.add_memory(rank, gib, other.memory_lines.get(rank, ""))

    @property
    def description(self) -> str:
        """How many figures there are, and of how many steps each."""
        n, steps = len(self.step_times_s), sorted(self.step_times_s)
        interval = _interval(steps) if self.is_log and steps else 1
        if interval == 1:
            return f"{n} in all"
        return (
            f"{n} means of about {interval} steps, of which those with warm-up steps don't count; "
            "try a log interval of 1"
        )

    def timed_steps_s(self, n_warmup: int) -> list[float]:
        """Seconds of the steps after the warm-up, in order.

        A figure that is the mean of several steps stands for each of them, and is left out where
        one of them belongs to the warm-up. Steps that a log doesn't time at its beginning are
        warm-up, too (DeepSpeed's timer begins with the third).

        Raises:
            ReportError: If a step is missing in between.
        """
        steps = sorted(self.step_times_s)
        if not steps:
            return []
        if not self.is_log:
            _check_gaps(steps, 1)
            return [self.step_times_s[step] for step in steps[n_warmup:]]
        spans = _spans(steps, self._n_steps)
        start = spans[0].step - spans[0].n_steps + 1
        due = (min(start, 1) if start <= _LATEST_START else start) + n_warmup
        found: list[float] = []
        for span in spans:
            if span.step - span.n_steps + 1 >= due:
                found += span.n_steps * [self.step_times_s[span.step]]
                due = span.step + 1
        return found


class _Span(NamedTuple):
    """The steps that a figure is the mean of: `n_steps` up to `step`."""

    step: int
    n_steps: int


def _spans(steps: list[int], n_steps: dict[int, int]) -> list[_Span]:
    if n_steps:
        return [_Span(step, n_steps.get(step, 1)) for step in steps]
    interval = _interval(steps)
    _check_gaps(steps, interval)
    first = _Span(steps[0], min(interval, max(steps[0], 1)))
    return [first, *(_Span(b, b - a) for a, b in pairwise(steps))]


def _interval(steps: list[int]) -> int:
    """Steps from one figure to the next: the most common gap, and the larger of two."""
    gaps = Counter(b - a for a, b in pairwise(steps))
    return max(gaps, key=lambda gap: (gaps[gap], gap)) if gaps else max(steps[0], 1)


def _check_gaps(steps: list[int], interval: int) -> None:
    for a, b in pairwise(steps):
        if b - a > interval:
            raise ReportError(
                f"step {a + interval} was not reported, though step {b} was; "
                "try a log interval of 1"
            )
