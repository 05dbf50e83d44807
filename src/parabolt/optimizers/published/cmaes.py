"""CMA-ES with margin, through Optuna."""

from __future__ import annotations

import importlib.util
import warnings
from typing import TYPE_CHECKING, Any

from parabolt.errors import MissingDependencyError
from parabolt.optimizers.published.optuna_study import OptunaOptimizer

if TYPE_CHECKING:
    from parabolt.outcome import Outcome

#: What an out-of-memory run is told as (published protocol); below every throughput.
_OOM_VALUE = -1.0

if importlib.util.find_spec("cmaes") is None:
    raise MissingDependencyError.of("cmaes", "optuna")


class CMAES(OptunaOptimizer):
    """Optuna's CMA-ES with margin, started at the best feasible row of the initial design.

    It knows no constraint: an out-of-memory run is told as -1 (published protocol).
    """

    name = "cmaes"
    _is_constrained = False

    def _make_sampler(self, seed: int) -> Any:
        best = self.history.best_feasible_row()
        start = None if best is None else self._params(best)
        from optuna.exceptions import ExperimentalWarning
        from optuna.samplers import CmaEsSampler

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            warnings.simplefilter("ignore", FutureWarning)  # x0 goes in Optuna 6
            return CmaEsSampler(x0=start, seed=seed, with_margin=True)

    def _value(self, outcome: Outcome) -> float:
        return outcome.throughput if outcome.is_feasible else _OOM_VALUE
