"""Upper confidence bound within the optimistic feasible region."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from parabolt.optimizers.published.surrogate_optimizer import AcquisitionOptimizer

if TYPE_CHECKING:
    from parabolt.optimizers.gp.surrogate import Surrogate
    from parabolt.outcome import FloatArray


class UCBC(AcquisitionOptimizer):
    """UCB-C (Nguyen et al. 2024, alg. 2).

    Maximises mean + sqrt(beta) std of throughput over the candidates whose margin may still be
    <= 0: those with a lower confidence bound mean - sqrt(beta) std <= 0. Where there is none, the
    smallest lower bound is tried; the paper instead resets the constraint's prior mean. The
    schedule is beta_t = 2 ln(d (t + 1)^2 pi^2 / 0.6) with d inputs and t from 0 (published runs;
    after Srinivas et al. 2010, theorem 1, with delta = 0.1 and d in place of the set's size).
    """

    name = "ucbc"

    def _acquisition(self, surrogate: Surrogate) -> FloatArray:
        d = surrogate.candidates.shape[1]
        width = math.sqrt(2.0 * math.log(d * (self.step + 1) ** 2 * math.pi**2 / 0.6))
        lower = surrogate.margin_mean - width * surrogate.margin_std
        if surrogate.constraint is not None and not (lower <= 0.0).any():
            return -lower
        is_optimistic = (lower <= 0.0) | (surrogate.constraint is None)
        return np.where(is_optimistic, surrogate.mean + width * surrogate.std, -np.inf)


class UCBCWithPrior(UCBC):
    """UCB-C whose GPs have the analytic means of `prior_mean`."""

    name = "ucbc+prior"
    uses_prior_mean = True
