"""Candidates by their mean rank on other instances."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parabolt.optimizers.transfer.fixed_order import FixedOrderOptimizer
from parabolt.optimizers.transfer.shared_inputs import SharedInputs, nearest

if TYPE_CHECKING:
    from parabolt.outcome import FloatArray, IntArray, Outcomes


class MeanRank(FixedOrderOptimizer):
    """Tries candidates by their mean rank over past instances.

    These are the average ranks of Brazdil and Soares (2000, "A comparison of ranking methods"). On
    each instance a candidate has the rank of the nearest configuration that was tried there, see
    `SharedInputs`. Ranks go from 0, the fastest, to 1; runs that did not fit share the last ones.
    """

    name = "mean-rank"

    def _ordered_rows(self) -> IntArray:
        inputs = SharedInputs.of(self.space, self.past)
        total = np.zeros(len(self.space))
        for item, points in zip(self.past, inputs.past, strict=True):
            outcomes = item.outcomes
            told = np.flatnonzero(outcomes.is_feasible | outcomes.is_infeasible)
            if len(told):
                at = nearest(inputs.candidates, points[told])
                total += normalised_ranks(outcomes.take(told))[at]
        return np.argsort(total, kind="stable")


def normalised_ranks(outcomes: Outcomes) -> FloatArray:
    """Ranks (n,) from 0, the fastest, to 1; equal ones share their mean, failed ones are last."""
    speed = np.where(outcomes.is_feasible, outcomes.throughput, 0.0)
    ascending = np.sort(speed)
    below = np.searchsorted(ascending, speed, side="left")
    not_above = np.searchsorted(ascending, speed, side="right")
    n_better = len(speed) - not_above
    ranks: FloatArray = n_better + (not_above - below - 1) / 2.0
    return ranks / max(len(speed) - 1, 1)
