"""Tree-structured Parzen estimator, through Optuna."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.optimizers.published.optuna_study import OptunaOptimizer

if TYPE_CHECKING:
    from parabolt.outcome import Outcome


class TPE(OptunaOptimizer):
    """Optuna's TPE with the memory margin as a constraint (feasible where <= 0).

    Optuna ranks infeasible trials by their violation alone, so the value told at an out-of-memory
    run (its imputed throughput, or 0 where there is none) isn't used. Every knob is sampled on its
    own, the default of Optuna up to 4.x and so of the published runs; Optuna 5 samples jointly by
    default. Pending proposals count as bad ones (constant liar). With the same seed, runs may
    part on another processor, as Optuna sorts equal values and rounds as the processor does.
    """

    name = "tpe"
    _is_constrained = True

    def _make_sampler(self, seed: int) -> Any:
        from optuna.samplers import TPESampler

        return TPESampler(seed=seed, n_startup_trials=self.n_initial, multivariate=False)

    def _value(self, outcome: Outcome) -> float:
        return outcome.throughput if np.isfinite(outcome.throughput) else 0.0
