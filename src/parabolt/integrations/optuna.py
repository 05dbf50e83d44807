"""The problems as Optuna objectives, and Optuna's GP sampler in our studies.

Optuna's conventions: the direction belongs to the study (`maximize`), a constraint is feasible
where <= 0, a trial that gives no value is pruned, seeds belong to the sampler.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.errors import MissingDependencyError, OptionError
from parabolt.integrations.box import CandidateBox, Placed
from parabolt.integrations.candidate_walk import CandidateWalk
from parabolt.optimizers.published.optuna_study import OptunaOptimizer, distribution
from parabolt.optimizers.told_margin import told_margin

try:
    import optuna
except ImportError as error:
    raise MissingDependencyError.of("optuna", "optuna") from error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from parabolt.integrations.candidate_walk import LevelChoice
    from parabolt.outcome import Outcome
    from parabolt.problems.problem import Problem


class Objective:
    """An objective for `study.optimize`, of a study with `directions=objective.directions`.

    The value is the throughput in iterations/s, to be maximised. With `with_memory` the peak memory
    in GiB is a second value, to be minimised; the reference point of both is `reference_point`. The
    constraint `memory_margin` is positive where the run died. A run that died has no value, so its
    trial is pruned, unless the problem imputes one (`ImputedProblem`; not with `with_memory`).

    Parameters are numbers of the encoding (`dp_log2`, ..., `zero_ordinal`), asked for one after
    another. A trial is offered only what the candidates with its earlier choices have, so every
    trial is a candidate. Samplers that need one space for all trials (CMA-ES, GP, grids) sample
    such parameters at random: for these `snap` asks for the whole box, and a point of it that is no
    candidate stands for its nearest one.

    User attributes of a trial: `configuration`, the candidate that was tried; `is_candidate`, False
    where the proposal was none; `status`; and `throughput_source`.

    Args:
        problem: The problem.
        snap: Whether to search the box around the candidates, see above.
        with_memory: Whether the peak memory is a second objective.
    """

    def __init__(self, problem: Problem, *, snap: bool = False, with_memory: bool = False) -> None:
        self.problem = problem
        self._box = CandidateBox(problem.space)
        self._walk = None if snap else CandidateWalk(problem.space)
        self._with_memory = with_memory

    @property
    def directions(self) -> list[str]:
        """For `optuna.create_study`: most throughput, and least memory where that is asked for."""
        return ["maximize", "minimize"] if self._with_memory else ["maximize"]

    @property
    def reference_point(self) -> list[float]:
        """0 iterations/s, and the memory of a GPU in GiB, which every run that fits is better than.

        Raises:
            OptionError: If the memory is no objective.
        """
        if not self._with_memory:
            raise OptionError("reference point: expected two objectives; try with_memory=True")
        return [0.0, float(self.problem.instance.cluster.memory_gib)]

    @property
    def search_space(self) -> dict[str, Any]:
        """Parameter name to the widest distribution that a trial can be offered."""
        if self._walk is None:
            return {name: distribution(low, high) for name, (low, high) in self._box.levels.items()}
        found: dict[str, Any] = {}
        for choice in self._walk.choices():
            offered, before = _offered(choice), found.get(choice.name)
            if before is not None and choice.is_range:
                offered = distribution(min(before.low, offered.low), max(before.high, offered.high))
            found[choice.name] = offered
        return found

    def __call__(self, trial: Any) -> Any:
        """The throughput of the trial's candidate, or throughput and peak memory.

        Raises:
            optuna.TrialPruned: If the run died and nothing is imputed, or its memory is not known
                and is an objective.
        """
        placed = self._ask(trial)
        outcome = self.problem.evaluate(placed.configuration)
        trial.set_user_attr("configuration", str(placed.configuration))
        trial.set_user_attr("is_candidate", placed.is_candidate)
        trial.set_user_attr("status", str(outcome.status))
        trial.set_user_attr("throughput_source", str(outcome.throughput_source))
        trial.set_constraint("memory_margin", told_margin(outcome))
        values = self.values(outcome)
        if not np.isfinite(values).all():
            raise optuna.TrialPruned(f"{placed.configuration} did not run: {outcome.status}")
        return values if self._with_memory else values[0]

    def values(self, outcome: Outcome) -> list[float]:
        """The values of an outcome; not finite where there are none."""
        values = [outcome.throughput]
        return [*values, outcome.peak_memory_gib] if self._with_memory else values

    def outcome(self, params: Mapping[str, Any]) -> Outcome:
        """The outcome of the candidate that parameters stand for.

        Raises:
            InvalidConfigurationError: If they stand for none.
        """
        if self._walk is None:
            return self.problem.evaluate(self._box.place_levels(params).configuration)
        return self.problem.evaluate(self.problem.space.candidates[self._walk.row_of(params)])

    def params(self, row: int) -> dict[str, int | float]:
        """Parameters of a candidate by row number, for `study.enqueue_trial`."""
        if self._walk is None:
            return self._box.levels_of(row)
        return {choice.name: level for choice, level in self._walk.levels_of(row).items()}

    def distributions(self, row: int) -> dict[str, Any]:
        """What each parameter of a candidate was offered from, for `optuna.trial.create_trial`."""
        if self._walk is None:
            return self.search_space
        return {choice.name: _offered(choice) for choice in self._walk.levels_of(row)}

    def _ask(self, trial: Any) -> Placed:
        if self._walk is not None:
            row = self._walk.go(lambda choice: _suggest(trial, choice))
            return Placed(self.problem.space.candidates[row], row, is_candidate=True)
        levels = {
            name: trial.suggest_int(name, low, high)
            if isinstance(low, int)
            else trial.suggest_float(name, low, high)
            for name, (low, high) in self._box.levels.items()
        }
        return self._box.place_levels(levels)


def _offered(choice: LevelChoice) -> Any:
    """The distribution of a choice."""
    if choice.is_range:
        return distribution(choice.levels[0], choice.levels[-1])
    return optuna.distributions.CategoricalDistribution(choice.levels)


def _suggest(trial: Any, choice: LevelChoice) -> Any:
    if choice.is_range:
        return trial.suggest_int(choice.name, choice.levels[0], choice.levels[-1])
    return trial.suggest_categorical(choice.name, choice.levels)


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
