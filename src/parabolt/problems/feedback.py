"""What is told of a trial that failed: nothing but that it did."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from parabolt.problems.problem import ProblemWrapper

if TYPE_CHECKING:
    from parabolt.outcome import IntArray, Outcomes


class FailureOnlyProblem(ProblemWrapper):
    """Tells of a trial that did not run its status alone; all figures are NaN."""

    def _evaluate_rows(self, rows: IntArray) -> Outcomes:
        outcomes = self.problem._evaluate_rows(rows)
        is_ok = outcomes.is_feasible
        return replace(
            outcomes,
            throughput=np.where(is_ok, outcomes.throughput, np.nan),
            peak_memory_gib=np.where(is_ok, outcomes.peak_memory_gib, np.nan),
            memory_margin=np.where(is_ok, outcomes.memory_margin, np.nan),
        )
