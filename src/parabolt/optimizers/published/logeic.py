"""Log constrained expected improvement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parabolt.optimizers.published.surrogate_optimizer import AcquisitionOptimizer

if TYPE_CHECKING:
    from parabolt.optimizers.gp.surrogate import Surrogate
    from parabolt.outcome import FloatArray


class LogEIC(AcquisitionOptimizer):
    """Maximises log EI + log P(feasible) (Gardner et al. 2014; log form Ament et al. 2023).

    The incumbent is the best feasible observation. While there is none, P(feasible) alone counts.
    """

    name = "logeic"
    is_log = True

    def _acquisition(self, surrogate: Surrogate) -> FloatArray:
        return self._log_eic(surrogate)
