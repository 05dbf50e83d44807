"""Log constrained expected improvement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parabolt.optimizers.acquisition import log_expected_improvement
from parabolt.optimizers.surrogate import Surrogate, SurrogateOptimizer

if TYPE_CHECKING:
    from parabolt.outcome import FloatArray


class LogEIC(SurrogateOptimizer):
    """Maximises log EI + log P(feasible) (Gardner et al. 2014; log form Ament et al. 2023).

    The incumbent is the best feasible observation. While there is none, P(feasible) alone counts.
    """

    name = "logeic"

    def _acquisition(self, surrogate: Surrogate) -> FloatArray:
        feasible = self.history.is_feasible
        if not feasible.any():
            return surrogate.log_feasible
        best = float(np.max(self.history.throughput[feasible]))
        improvement = log_expected_improvement(surrogate.mean, surrogate.std, best)
        return improvement + surrogate.log_feasible
