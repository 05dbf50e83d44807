"""The problems as OptunaHub benchmarks: `optunahub.benchmarks.BaseProblem`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.errors import MissingDependencyError
from parabolt.integrations.optuna import Objective
from parabolt.optimizers.told_margin import told_margin
from parabolt.problems.registry import load_problem

try:
    import optuna
    from optunahub.benchmarks import BaseProblem
except ImportError as error:
    raise MissingDependencyError.of("optunahub", "optunahub") from error

if TYPE_CHECKING:
    from parabolt.problems.problem import Problem


class ParallelismProblem(BaseProblem):
    """A problem by OptunaHub's conventions; a trial behaves as with `Objective`.

    Args:
        problem: A problem, or the name of one.
    """

    def __init__(self, problem: Problem | str = "pco32") -> None:
        self.problem = load_problem(problem) if isinstance(problem, str) else problem
        self._objective = Objective(self.problem)

    @property
    def search_space(self) -> dict[str, Any]:
        """Parameter name to distribution."""
        return self._objective.search_space

    @property
    def directions(self) -> list[Any]:
        """Throughput is maximised."""
        return [optuna.study.StudyDirection.MAXIMIZE]

    def __call__(self, trial: Any) -> float:
        """Throughput and constraint from one trial; see `Objective`."""
        return self._objective(trial)

    def evaluate(self, params: dict[str, Any]) -> float:
        """Throughput in iterations/s.

        Raises:
            optuna.TrialPruned: If the run died and nothing is imputed.
        """
        outcome = self._objective.outcome(params)
        if not np.isfinite(outcome.throughput):
            raise optuna.TrialPruned(f"did not run: {outcome.status}")
        return outcome.throughput

    def evaluate_constraints(self, params: dict[str, Any]) -> dict[str, float]:
        """Memory margin: feasible where <= 0."""
        return {"memory_margin": told_margin(self._objective.outcome(params))}
