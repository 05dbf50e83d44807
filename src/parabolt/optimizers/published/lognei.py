"""Log constrained noisy expected improvement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parabolt.optimizers.choice import first_best
from parabolt.optimizers.published.noisy_improvement import log_noisy_constrained_ei
from parabolt.optimizers.published.surrogate_optimizer import SurrogateOptimizer

if TYPE_CHECKING:
    from parabolt.optimizers.gp.surrogate import Surrogate
    from parabolt.outcome import IntArray

#: Quasi-random samples (published).
_N_SAMPLES = 128
#: Candidates that are scored at most.
_MAX_SCORED = 4096


class LogNEI(SurrogateOptimizer):
    """Maximises the log of constrained noisy EI (Letham et al. 2019), with 128 samples.

    The baseline is the distinct candidates that were observed to run. EI and the probability of
    feasibility are in closed form given a sample of the baseline, as in the paper; the published
    runs sample the candidate too and smooth the indicator of feasibility. While nothing feasible is
    known, P(feasible) alone counts. Of more than 4,096 candidates only the 4,096 with the largest
    log EIC are scored.
    """

    name = "lognei"

    def _choose(self, surrogate: Surrogate, available: IntArray) -> int:
        baseline = np.unique(self.history.rows[self.history.is_feasible])
        if len(baseline) == 0 or surrogate.objective is None:
            return int(available[first_best(surrogate.log_feasible[available], unit=1.0)])
        rows = self._shortlist(surrogate, available, _MAX_SCORED)
        constraint = surrogate.constraint
        value = log_noisy_constrained_ei(
            surrogate.objective.gp,
            None if constraint is None else constraint.gp,
            self._inputs[baseline],
            self._inputs[rows],
            _N_SAMPLES,
            self.rng,
            self._deadline,
        )
        return int(rows[first_best(value, unit=1.0)])


class LogNEIWithPrior(LogNEI):
    """Log constrained noisy EI with GPs that have the analytic means of `prior_mean`."""

    name = "lognei+prior"
    uses_prior_mean = True
