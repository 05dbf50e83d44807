"""Constrained max-value entropy search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_ndtr

from parabolt.optimizers.published.surrogate_optimizer import AcquisitionOptimizer

if TYPE_CHECKING:
    from parabolt.optimizers.gp.surrogate import Surrogate
    from parabolt.outcome import FloatArray

#: Sampled constrained maxima (published).
_N_MAXIMA = 10
#: Candidates over which maxima are sampled at most; beyond, so many of the most promising.
_MAX_SAMPLED, _N_PROMISING = 50_000, 2048


class CMES(AcquisitionOptimizer):
    """CMES-IBO (Takeno et al. 2022, eq. 6): information that a try gives about the maximum.

    alpha(x) = -mean_k log(1 - P(f(x) > f*_k) P(feasible)). The maxima f*_k are taken from joint
    samples over all candidates, each the largest throughput that the sample calls feasible; -inf
    where it calls nothing feasible, which makes alpha a search for feasibility. The paper samples
    by random features on a continuous domain; on a finite set the samples are exact. Of more than
    50,000 candidates, the maxima are those of the 2,048 with the largest log EIC.
    """

    name = "cmes"

    def _acquisition(self, surrogate: Surrogate) -> FloatArray:
        maxima = self.sample_maxima(surrogate, _N_MAXIMA)
        information = np.zeros(len(surrogate.mean))
        for maximum in maxima:
            log_exceeds = log_ndtr((surrogate.mean - maximum) / surrogate.std)
            # At P = 1 the information is without bound; all that matters is that it stays finite.
            gain = np.minimum(np.exp(log_exceeds + surrogate.log_feasible), 1.0 - 1e-12)
            information -= np.log1p(-gain)
        return information / len(maxima)

    def sample_maxima(self, surrogate: Surrogate, n: int) -> FloatArray:
        """Samples n constrained maxima (n,) over the candidates; -inf where nothing is feasible."""
        rows = np.arange(len(surrogate.mean))
        if len(rows) > _MAX_SAMPLED:
            rows = self._shortlist(surrogate, rows, _N_PROMISING)
        _, f, c = self._draw(surrogate, rows, n)
        return np.asarray(np.where(c <= 0.0, f, -np.inf).max(axis=1))
