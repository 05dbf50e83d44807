"""The best configurations of other instances, tried first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parabolt.optimizers.transfer.fixed_order import FixedOrderOptimizer
from parabolt.optimizers.transfer.shared_inputs import SharedInputs, nearest

if TYPE_CHECKING:
    from parabolt.instances.specs import Instance
    from parabolt.outcome import FloatArray, IntArray, Outcomes


class BestOfHistory(FixedOrderOptimizer):
    """Tries what was best elsewhere (Feurer, Springenberg and Hutter 2015, section 3).

    First the best finished run of every past instance, the most similar instance first, then the
    second best of each, and so on. A run stands for the candidate nearest to it, see
    `SharedInputs`. Instances are similar that have about as many GPUs and about as large a model;
    these are the meta-features of the paper here.
    """

    name = "best-of-history"

    def _ordered_rows(self) -> IntArray:
        inputs = SharedInputs.of(self.space, self.past)
        unlikeness = [_unlikeness(item.instance, self.space.instance) for item in self.past]
        found: list[tuple[int, int, int]] = []
        for place, number in enumerate(np.argsort(unlikeness, kind="stable")):
            best = _best_first(self.past[number].outcomes)
            if len(best):
                rows = nearest(inputs.past[number][best], inputs.candidates)
                found += [(rank, place, int(row)) for rank, row in enumerate(rows)]
        rows_in_order = dict.fromkeys(row for _, _, row in sorted(found))
        return np.array(list(rows_in_order), dtype=np.int64)


def _best_first(outcomes: Outcomes) -> IntArray:
    """Places of the finished runs, the fastest first."""
    finished = np.flatnonzero(outcomes.is_feasible)
    return finished[np.argsort(-outcomes.throughput[finished], kind="stable")]


def _unlikeness(one: Instance, other: Instance) -> float:
    """Distance in doublings of GPUs and of the weights of a model's layers."""
    a, b = _meta_features(one), _meta_features(other)
    return float(np.sqrt(((a - b) ** 2).sum()))


def _meta_features(instance: Instance) -> FloatArray:
    model = instance.model
    weights = model.n_layers * model.hidden_size**2
    return np.log2(np.array([instance.cluster.n_gpus, weights], dtype=np.float64))
