"""The problems as OptunaHub benchmarks: `optunahub.benchmarks.BaseProblem`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.errors import MissingDependencyError
from parabolt.optimizers.told_margin import told_margin
from parabolt.problems.registry import load_problem

try:
    import optuna
    from optunahub.benchmarks import BaseProblem
except ImportError as error:
    raise MissingDependencyError.of("optunahub", "optunahub") from error

from parabolt.integrations.optuna import Objective

if TYPE_CHECKING:
    from parabolt.problems.problem import Problem


class ParallelismProblem(BaseProblem):
    """A problem by OptunaHub's conventions; a trial behaves as with `Objective`.

    Args:
        problem: A problem, or the name of one.
        snap: Whether to search the box around the candidates, see `Objective`.
        with_memory: Whether the peak memory is a second objective.
    """

    def __init__(
        self,
        problem: Problem | str = "pco32",
        *,
        snap: bool = False,
        with_memory: bool = False,
    ) -> None:
        self.problem = load_problem(problem) if isinstance(problem, str) else problem
        self._objective = Objective(self.problem, snap=snap, with_memory=with_memory)

    @property
    def search_space(self) -> dict[str, Any]:
        """Parameter name to the widest distribution that a trial can be offered."""
        return self._objective.search_space

    @property
    def directions(self) -> list[Any]:
        """Throughput is maximised, peak memory minimised."""
        return [optuna.study.StudyDirection[name.upper()] for name in self._objective.directions]

    @property
    def reference_point(self) -> list[float]:
        """See `Objective.reference_point`."""
        return self._objective.reference_point

    def __call__(self, trial: Any) -> Any:
        """Values and constraint from one trial; see `Objective`."""
        return self._objective(trial)

    def evaluate(self, params: dict[str, Any]) -> Any:
        """Throughput in iterations/s, or throughput and peak memory in GiB.

        Raises:
            InvalidConfigurationError: If the parameters are no candidate's, and `snap` is not set.
            optuna.TrialPruned: If the run died and nothing is imputed.
        """
        outcome = self._objective.outcome(params)
        values = self._objective.values(outcome)
        if not np.isfinite(values).all():
            raise optuna.TrialPruned(f"did not run: {outcome.status}")
        return values if len(values) > 1 else values[0]

    def evaluate_constraints(self, params: dict[str, Any]) -> dict[str, float]:
        """Memory margin: feasible where <= 0."""
        return {"memory_margin": told_margin(self._objective.outcome(params))}
