"""SCBO's trust region on a finite candidate set, as a value (Eriksson & Poloczek 2021).

A box of side L often holds no candidate, so the region is the k candidates nearest to the centre,
and k halves and doubles where L would.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from parabolt.outcome import BoolArray, FloatArray, IntArray

SUCCESS_TOLERANCE = 3
FAILURE_TOLERANCE = 10
#: A success beats the incumbent by this share of it.
MIN_GAIN = 1e-3
#: The region restarts when it is no larger than this.
MIN_SIZE = 10


@dataclass(frozen=True)
class TrustRegion:
    """Size of the region, and the incumbent that a success has to beat.

    Attributes:
        n_candidates: Candidates in all.
        size: k, candidates in the region.
        best_throughput: Throughput of the incumbent; -inf before the first observation.
        best_violation: Its memory margin where it did not fit, else 0; inf before the first.
        is_feasible: Whether the incumbent ran.
        n_successes: Successes in a row.
        n_failures: Failures in a row.
    """

    n_candidates: int
    size: int
    best_throughput: float = -np.inf
    best_violation: float = np.inf
    is_feasible: bool = False
    n_successes: int = 0
    n_failures: int = 0

    @classmethod
    def around(cls, n_candidates: int, incumbent: tuple[float, float, bool]) -> TrustRegion:
        """The first region, of half of the candidates.

        Args:
            n_candidates: Candidates in all.
            incumbent: Throughput, violation and feasibility of the initial design's best.
        """
        return cls(n_candidates, max(n_candidates // 2, 1), *incumbent)

    @property
    def initial_size(self) -> int:
        """Size at the start and after a restart."""
        return max(self.n_candidates // 2, 1)

    @property
    def min_size(self) -> int:
        """The size at which the region restarts; below the initial size, or it always would."""
        return max(1, min(MIN_SIZE, self.initial_size // 2))

    def after(self, throughput: float, violation: float, *, is_feasible: bool) -> TrustRegion:
        """The region after one more observation.

        A success is a run that beats the incumbent by `MIN_GAIN`, or the first run that fits; and
        while none fits, a smaller violation. Three successes in a row double the size, ten
        failures halve it.
        """
        if is_feasible:
            goal = self.best_throughput + MIN_GAIN * abs(self.best_throughput)
            is_success = not self.is_feasible or throughput > goal
        else:
            is_success = not self.is_feasible and violation < self.best_violation
        region = self._counted(is_success)
        if is_success:
            region = replace(
                region,
                best_throughput=throughput,
                best_violation=violation,
                is_feasible=is_feasible,
            )
        return region._resized()

    def _counted(self, is_success: bool) -> TrustRegion:  # noqa: FBT001 - a private one-liner
        if is_success:
            return replace(self, n_successes=self.n_successes + 1, n_failures=0)
        return replace(self, n_successes=0, n_failures=self.n_failures + 1)

    def _resized(self) -> TrustRegion:
        region = self
        if region.n_successes >= SUCCESS_TOLERANCE:
            region = replace(region, size=min(2 * region.size, self.n_candidates), n_successes=0)
        elif region.n_failures >= FAILURE_TOLERANCE:
            region = replace(region, size=max(region.size // 2, self.min_size), n_failures=0)
        if region.size <= self.min_size:
            region = replace(region, size=self.initial_size)
        return region


def nearest_rows(
    X: FloatArray, centre: FloatArray, lengthscales: FloatArray, rows: IntArray, k: int
) -> IntArray:
    """The k of `rows` nearest to a centre, ascending; of several as near the first.

    Args:
        X: Inputs (N, d) in the unit cube.
        centre: Centre (d,).
        lengthscales: Lengthscales (d,); a difference counts in units of its lengthscale over their
            geometric mean, so the region is long where the objective is flat (section 2 of the
            paper).
        rows: Rows to choose from.
        k: How many, at most.
    """
    weights = lengthscales / np.exp(np.log(lengthscales).mean())
    distance = (((X[rows] - centre) / weights) ** 2).sum(axis=1)
    # Rounded, since distances that are equal on paper differ in their last digits.
    rank = np.argsort(np.round(distance / max(distance.max(), 1e-300), 9), kind="stable")
    return np.sort(rows[rank[:k]])


def incumbent(throughput: FloatArray, margin: FloatArray, is_feasible: BoolArray) -> int:
    """Index of the best run that fits; else of the highest throughput of the least violation.

    Args:
        throughput: (n,), NaN where there is none.
        margin: (n,) memory margins, NaN where unknown.
        is_feasible: (n,).
    """
    score = np.where(np.isnan(throughput), -np.inf, throughput)
    if is_feasible.any():
        return int(np.argmax(np.where(is_feasible, score, -np.inf)))
    violation = violations(margin, is_feasible)
    least = violation <= violation.min()
    return int(np.flatnonzero(least)[np.argmax(score[least])])


def violations(margin: FloatArray, is_feasible: BoolArray) -> FloatArray:
    """How far each run was over capacity (n,): 0 where it fits, inf where that is unknown."""
    over = np.where(np.isnan(margin), np.inf, np.maximum(margin, 0.0))
    return np.where(is_feasible, 0.0, over)
