"""Scalable constrained Bayesian optimization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.optimizers.published.cts import best_sampled
from parabolt.optimizers.published.surrogate_optimizer import SurrogateOptimizer
from parabolt.optimizers.published.trust_region import (
    TrustRegion,
    incumbent,
    nearest_rows,
    violations,
)

if TYPE_CHECKING:
    from parabolt.instances.search_space import SearchSpace
    from parabolt.optimizers.gp.surrogate import Surrogate
    from parabolt.outcome import FloatArray, IntArray


class SCBO(SurrogateOptimizer):
    """Constrained Thompson sampling within a trust region (Eriksson & Poloczek 2021).

    The region is the k available candidates nearest to the best observation, see `trust_region`;
    it starts at half of the candidates, doubles after 3 successes in a row, halves after 10
    failures, and starts again when it is down to 10. The paper's box, its failure tolerance
    (dimension / batch size) and its end of the run at a restart are made for continuous domains;
    these choices are the published runs'. Lengthscales have a floor of one lattice step, below
    which no data on the lattice can tell them.
    """

    name = "scbo"

    def __init__(self, space: SearchSpace, **options: Any) -> None:
        super().__init__(space, **options)
        self._region: TrustRegion | None = None
        self._n_seen = 0

    def _min_lengthscales(self) -> FloatArray:
        lower, upper = self.space.instance.encoding.bounds
        return np.asarray(1.0 / np.maximum(upper - lower, 1.0))

    def _choose(self, surrogate: Surrogate, available: IntArray) -> int:
        region = self._region_now()
        if surrogate.objective is not None and len(self.history):
            counts = self._counted_rows()
            centre = self._inputs[self.history.rows[counts[self._incumbent(counts)]]]
            scales = surrogate.objective.gp.hyper.lengthscales
            available = nearest_rows(self._inputs, centre, scales, available, region.size)
        rows, f, c = self._draw(surrogate, available, 1)
        return int(rows[best_sampled(f[0], c[0])])

    def _region_now(self) -> TrustRegion:
        """The region after all that was told; the design sets its first incumbent."""
        history = self.history
        violation = violations(history.memory_margin, history.is_timed)
        counts = self._counted_rows()
        if self._region is None:
            first = (-np.inf, np.inf, False)
            if len(counts):
                i = counts[self._incumbent(counts)]
                throughput = float(np.nan_to_num(history.throughput[i], nan=-np.inf))
                first = (throughput, float(violation[i]), bool(history.is_timed[i]))
            self._region = TrustRegion.around(len(self.space), first)
        else:
            for i in counts[counts >= self._n_seen]:
                throughput = float(np.nan_to_num(history.throughput[i], nan=-np.inf))
                self._region = self._region.after(
                    throughput, float(violation[i]), is_feasible=bool(history.is_timed[i])
                )
        self._n_seen = len(history)
        return self._region

    def _counted_rows(self) -> IntArray:
        """Observations that say something of their configuration."""
        return np.flatnonzero(self.history.is_informative)

    def _incumbent(self, counts: IntArray) -> int:
        history = self.history
        return incumbent(
            history.throughput[counts], history.memory_margin[counts], history.is_timed[counts]
        )
