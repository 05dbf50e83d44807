"""Uniform random search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parabolt.optimizers.optimizer import Optimizer

if TYPE_CHECKING:
    from parabolt.outcome import IntArray


class RandomOptimizer(Optimizer):
    """Each proposal is uniform over the candidates; recommends the best feasible observation."""

    name = "random"

    def _next_row(self, available: IntArray) -> int:
        return self._random_row(available)
