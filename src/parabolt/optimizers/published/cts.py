"""Constrained Thompson sampling."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parabolt.optimizers.choice import first_best
from parabolt.optimizers.published.surrogate_optimizer import SurrogateOptimizer

if TYPE_CHECKING:
    from parabolt.optimizers.gp.surrogate import Surrogate
    from parabolt.outcome import FloatArray, IntArray


def best_sampled(f: FloatArray, c: FloatArray) -> int:
    """Index of the largest f (m,) where c (m,) is <= 0; of the least c where it never is."""
    fits = c <= 0.0
    return first_best(np.where(fits, f, -np.inf)) if fits.any() else first_best(-c)


class CTS(SurrogateOptimizer):
    """Tries the best feasible candidate of one joint sample of throughput and margin.

    The sample covers the whole candidate set, as in the published runs; where it calls nothing
    feasible, the least violation is tried (Eriksson & Poloczek 2021, without the trust region). At
    any size of the set the sample is exact with the RBF kernel; for `matern52` see
    `SurrogateOptimizer`.
    """

    name = "cts"

    def _choose(self, surrogate: Surrogate, available: IntArray) -> int:
        rows, f, c = self._draw(surrogate, available, 1)
        return int(rows[best_sampled(f[0], c[0])])
