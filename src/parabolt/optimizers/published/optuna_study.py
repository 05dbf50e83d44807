"""Optuna samplers on a finite candidate set: the part that tpe and cmaes share."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.errors import MissingDependencyError, OptionError
from parabolt.optimizers.initial_design import DesignedOptimizer
from parabolt.optimizers.told_margin import told_margin

try:
    import optuna
except ImportError as error:
    raise MissingDependencyError.of("optuna", "optuna") from error

if TYPE_CHECKING:
    from parabolt.instances.search_space import SearchSpace
    from parabolt.outcome import IntArray, Outcome


class OptunaOptimizer(DesignedOptimizer):
    """Asks an Optuna sampler over the encoded box and repairs its proposal to the nearest row.

    The sampler is made when the initial design is over and is told the design as finished trials.
    A repaired proposal is told back as the trial it came from. Crashed and stopped runs are told as
    failed trials. "Nearest" is in the unit cube of the encoding's bounds. With a whole number as
    `seed`, that is the sampler's seed. The arguments are those of `DesignedOptimizer`, but that a
    sampler can't be hurried.

    Raises:
        OptionError: If a time limit is asked for.
    """

    #: Whether the sampler is told the memory margin as a constraint (feasible where <= 0).
    _is_constrained: bool

    def __init__(self, space: SearchSpace, **options: Any) -> None:
        super().__init__(space, **options)
        if self.ask_time_limit_s is not None:
            raise OptionError(
                f"{self.name}: expected no ask_time_limit_s, got {self.ask_time_limit_s}; "
                "an Optuna sampler can't be cut short"
            )
        # CMA-ES orders parameters by name: these names keep the order of the knobs (published).
        self._distributions = {
            f"x{i}": distribution(low, high)
            for i, (low, high) in enumerate(space.instance.encoding.ranges.values())
        }
        self._study: optuna.Study | None = None
        self._open: dict[int, list[optuna.Trial]] = {}
        self._told_before: list[tuple[int, Outcome]] = []

    @abstractmethod
    def _make_sampler(self, seed: int) -> Any:
        """The sampler; called once, when the initial design is over."""

    @abstractmethod
    def _value(self, outcome: Outcome) -> float:
        """What the sampler is told to maximise, for a finished or an out-of-memory run."""

    def _model_row(self, available: IntArray) -> int:
        trial = self._ensure_study().ask(self._distributions)
        levels = np.array([trial.params[name] for name in self._distributions], dtype=np.float64)
        point = self.space.instance.encoding.to_unit(levels)
        distance = ((self.space.unit_cube[available] - point) ** 2).sum(axis=1)
        row = int(available[np.argmin(distance)])
        self._open.setdefault(row, []).append(trial)
        return row

    def _observe(self, row: int, outcome: Outcome) -> None:
        super()._observe(row, outcome)
        if self._study is None:
            self._told_before.append((row, outcome))
            return
        trials = self._open.get(row)
        if not trials:
            self._add_trial(self._study, row, outcome)
            return
        trial = trials.pop(0)
        if outcome.status.is_definite:
            for name, margin in self._constraints(outcome).items():
                trial.set_constraint(name, margin)
            self._study.tell(trial, self._value(outcome))
        else:
            self._study.tell(trial, state=optuna.trial.TrialState.FAIL)

    def _ensure_study(self) -> Any:
        if self._study is None:
            drawn = int(self.rng.integers(2**32)) if self.seed is None else self.seed
            sampler = self._make_sampler(drawn)
            self._study = _quiet_study(sampler)
            for row, outcome in self._told_before:
                self._add_trial(self._study, row, outcome)
        return self._study

    def _add_trial(self, study: Any, row: int, outcome: Outcome) -> None:
        if not outcome.status.is_definite:
            return
        study.add_trial(
            optuna.trial.create_trial(
                params=self._params(row),
                distributions=self._distributions,
                value=self._value(outcome),
                constraints=self._constraints(outcome) or None,
            )
        )

    def _params(self, row: int) -> dict[str, float]:
        """A candidate as the sampler's parameters."""
        numbers = self.space.encoded[row].tolist()
        return {
            name: distribution.to_external_repr(number)
            for (name, distribution), number in zip(
                self._distributions.items(), numbers, strict=True
            )
        }

    def _constraints(self, outcome: Outcome) -> dict[str, float]:
        return {"memory_margin": told_margin(outcome)} if self._is_constrained else {}


def distribution(low: float, high: float) -> Any:
    """The distribution of a number of the encoding between its bounds."""
    if isinstance(low, int):
        return optuna.distributions.IntDistribution(low, high)
    return optuna.distributions.FloatDistribution(low, high)


def _quiet_study(sampler: Any) -> Any:
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        return optuna.create_study(sampler=sampler, direction="maximize")
    finally:
        optuna.logging.set_verbosity(verbosity)
