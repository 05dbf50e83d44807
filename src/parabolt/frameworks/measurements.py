"""What a program's report or log says of its steps and its memory, as it comes in."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise


class ReportError(Exception):
    """A report that says nothing certain; the trial has failed, and the search goes on."""


@dataclass
class Measurements:
    """Steps and memory as they come in.

    Attributes:
        step_times_s: Step number to seconds. Of several ranks that report a step the slowest
            counts: the step is over when all are.
        peak_memory_gb: Rank to its largest peak memory so far, in GB (1e9 bytes).
    """

    step_times_s: dict[int, float] = field(default_factory=dict)
    peak_memory_gb: dict[int, float] = field(default_factory=dict)
    _reported: set[tuple[int, int]] = field(default_factory=set)

    def add_step(self, step: int, seconds: float, rank: int = 0) -> None:
        """Records a step.

        Raises:
            ReportError: If the same rank reports a step twice, or the time isn't positive.
        """
        if not 0.0 < seconds < math.inf:
            raise ReportError(f"step {step}: expected positive seconds, got {seconds}")
        if (step, rank) in self._reported:
            raise ReportError(
                f"rank {rank} reported step {step} twice: did the program restart itself?"
            )
        self._reported.add((step, rank))
        self.step_times_s[step] = max(seconds, self.step_times_s.get(step, 0.0))

    def add_memory(self, rank: int, peak_memory_gb: float) -> None:
        """Records the peak memory of a rank in GB.

        Raises:
            ReportError: If it isn't a positive number.
        """
        if not 0.0 < peak_memory_gb < math.inf:
            raise ReportError(f"rank {rank}: expected a positive peak memory, got {peak_memory_gb}")
        self.peak_memory_gb[rank] = max(peak_memory_gb, self.peak_memory_gb.get(rank, 0.0))

    def merge(self, other: Measurements) -> None:
        """Takes over what `other` has; where both have a figure the larger one counts."""
        for mine, its in (
            (self.step_times_s, other.step_times_s),
            (self.peak_memory_gb, other.peak_memory_gb),
        ):
            for key, value in its.items():
                mine[key] = max(value, mine.get(key, 0.0))

    def timed_steps_s(self, n_warmup: int) -> list[float]:
        """Seconds of the steps after the warm-up, in order.

        Raises:
            ReportError: If a step is missing in between.
        """
        steps = sorted(self.step_times_s)
        if steps and steps[-1] - steps[0] + 1 != len(steps):
            gap = next(a + 1 for a, b in pairwise(steps) if b != a + 1)
            raise ReportError(
                f"step {gap} was not reported, though step {steps[-1]} was; try a log interval of 1"
            )
        return [self.step_times_s[step] for step in steps[n_warmup:]]
