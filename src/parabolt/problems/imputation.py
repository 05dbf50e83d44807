"""Imputation: a number at an out-of-memory row, for optimizers that can't do without."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from parabolt.outcome import FAILED, OOM_MARGIN, SOURCES, Source
from parabolt.problems.problem import Problem, ProblemWrapper

if TYPE_CHECKING:
    from parabolt.outcome import BoolArray, FloatArray, IntArray, Outcomes

#: Squared distances within this of the smallest are ties.
_TIE_TOLERANCE = 1e-9


def impute_throughput(
    encoded: FloatArray, throughput: FloatArray, feasible: BoolArray
) -> FloatArray:
    """Fills infeasible rows with the mean of their nearest feasible rows (BoLT benchmark).

    Args:
        encoded: Encoded rows (n, d).
        throughput: Iterations/s (n,); ignored where infeasible.
        feasible: Which rows are feasible (n,), at least one.

    Returns:
        Throughput (n,): unchanged where feasible; elsewhere the mean over **all** feasible rows
        tied at the smallest Euclidean distance in the encoding.
    """
    filled = throughput.copy()
    known, found = encoded[feasible], throughput[feasible]
    holes = np.flatnonzero(~feasible)
    squares = (known**2).sum(axis=1)
    for block in np.array_split(holes, max(1, len(holes) * len(known) >> 22)):
        points = encoded[block]
        distances = (points**2).sum(axis=1)[:, None] + squares - 2.0 * points @ known.T
        ties = distances <= distances.min(axis=1, keepdims=True) + _TIE_TOLERANCE
        for row, tied in zip(block.tolist(), ties, strict=True):
            # Exact sums: those of a matrix product depend on the processor in the last digit.
            filled[row] = math.fsum(found[tied]) / np.count_nonzero(tied)
    return filled


class ImputedProblem(ProblemWrapper):
    """Gives outcomes of what does not run a throughput, marked `imputed`; their status stays.

    A run that failed for a reason that isn't recorded gets `OOM_MARGIN` too, marked `imputed`.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        whole = problem._evaluate_rows(np.arange(len(problem.space)))
        self._filled = impute_throughput(problem.space.encoded, whole.throughput, whole.is_feasible)

    def _evaluate_rows(self, rows: IntArray) -> Outcomes:
        outcomes = self.problem._evaluate_rows(rows)
        dead, unknown = outcomes.is_infeasible, np.equal(outcomes.status, FAILED)
        imputed = SOURCES.index(Source.IMPUTED)
        return replace(
            outcomes,
            throughput=np.where(dead, self._filled[rows], outcomes.throughput),
            throughput_source=np.where(dead, imputed, outcomes.throughput_source).astype(np.uint8),
            memory_margin=np.where(unknown, OOM_MARGIN, outcomes.memory_margin),
            memory_source=np.where(unknown, imputed, outcomes.memory_source).astype(np.uint8),
        )
