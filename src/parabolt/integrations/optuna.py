"""The problems as Optuna objectives, and Optuna's GP sampler in our studies.

Optuna's conventions: the direction belongs to the study (`maximize`), a constraint is feasible
where <= 0, a trial that gives no value is pruned, seeds belong to the sampler.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.errors import MissingDependencyError
from parabolt.integrations.box import CandidateBox
from parabolt.optimizers.published.optuna_study import OptunaOptimizer, distribution
from parabolt.optimizers.told_margin import told_margin

try:
    import optuna
except ImportError as error:
    raise MissingDependencyError.of("optuna", "optuna") from error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from parabolt.outcome import Outcome
    from parabolt.problems.problem import Problem


class Objective:
    """An objective for `study.optimize`, of a study with `direction="maximize"`.

    Parameters are the levels of the encoding (`dp_log2`, ..., `zero_ordinal`). The value is
    the throughput in iterations/s; the constraint `memory_margin` is positive where the run died. A
    run that died has no value, so its trial is pruned, unless the problem imputes one
    (`ImputedProblem`). User attributes of a trial: `configuration`, the candidate that was tried;
    `is_candidate`, False where the proposal was none and its nearest one was tried; `status`; and
    `throughput_source`.

    Args:
        problem: The problem.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._box = CandidateBox(problem.space)

    @property
    def search_space(self) -> dict[str, Any]:
        """Parameter name to distribution."""
        return {name: distribution(low, high) for name, (low, high) in self._box.levels.items()}

    def __call__(self, trial: Any) -> float:
        """The throughput of the trial's candidate.

        Raises:
            optuna.TrialPruned: If the run died and nothing is imputed.
        """
        levels = {
            name: trial.suggest_int(name, low, high)
            if isinstance(low, int)
            else trial.suggest_float(name, low, high)
            for name, (low, high) in self._box.levels.items()
        }
        placed = self._box.place_levels(levels)
        outcome = self.problem.evaluate(placed.configuration)
        trial.set_user_attr("configuration", str(placed.configuration))
        trial.set_user_attr("is_candidate", placed.is_candidate)
        trial.set_user_attr("status", str(outcome.status))
        trial.set_user_attr("throughput_source", str(outcome.throughput_source))
        trial.set_constraint("memory_margin", told_margin(outcome))
        if not np.isfinite(outcome.throughput):
            raise optuna.TrialPruned(f"{placed.configuration} did not run: {outcome.status}")
        return outcome.throughput

    def outcome(self, params: Mapping[str, Any]) -> Outcome:
        """The outcome of the candidate that parameters stand for."""
        return self.problem.evaluate(self._box.place_levels(params).configuration)

    def params(self, row: int) -> dict[str, int | float]:
        """Parameters of a candidate by row number, for `study.enqueue_trial`."""
        return self._box.levels_of(row)


class OptunaGP(OptunaOptimizer):
    """Optuna's GP sampler with the memory margin as a constraint (feasible where <= 0).

    It can't use a trial without a value, so a run that died is told with its imputed throughput,
    or, where there is none, with the lowest throughput of a run that finished (0 while none did).
    """

    name = "optuna-gp"
    libraries = ("torch",)
    _is_constrained = True

    def _make_sampler(self, seed: int) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
                return optuna.samplers.GPSampler(seed=seed, n_startup_trials=self.n_initial)
        except ImportError as error:
            raise MissingDependencyError.of("torch", "torch") from error

    def _value(self, outcome: Outcome) -> float:
        if np.isfinite(outcome.throughput):
            return outcome.throughput
        finished = self.history.throughput[self.history.is_feasible]
        return float(finished.min()) if len(finished) else 0.0
