"""The problems as CARP-S tasks.

CARP-S's conventions are SMAC's: a cost is minimised, here -throughput in iterations/s, and a run
that died has the status `MEMORYOUT`, here with cost 0 (it made no iteration). The search space has
the validity rules as forbidden clauses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from parabolt.errors import MissingDependencyError
from parabolt.experiments.protocol import PUBLISHED_BUDGETS

try:
    from carps.objective_functions.objective_function import ObjectiveFunction
    from carps.utils.task import (
        InputSpace,
        OptimizationResources,
        OutputSpace,
        Task,
        TaskMetadata,
        get_search_space_info,
    )
    from carps.utils.trials import StatusType, TrialValue
except ImportError as error:
    raise MissingDependencyError.of("carps", "carps") from error

from parabolt.integrations.configspace import candidate, configuration_space
from parabolt.integrations.cost import cost, status_name

if TYPE_CHECKING:
    from parabolt.problems.problem import Problem


class Throughput(ObjectiveFunction):
    """The objective function of a problem.

    Args:
        problem: The problem.
        seed: Seed of the configuration space.
        loggers: CARP-S loggers.
    """

    def __init__(
        self, problem: Problem, *, seed: int = 0, loggers: list[Any] | None = None
    ) -> None:
        super().__init__(loggers)
        self.problem = problem
        self._configspace = configuration_space(problem.space, seed=seed)

    @property
    def configspace(self) -> Any:
        """The candidates as a `ConfigurationSpace`."""
        return self._configspace

    @property
    def f_min(self) -> float:
        """The smallest cost: minus the optimum."""
        return -self.problem.optimum.value

    def _evaluate(self, trial_info: Any) -> Any:
        outcome = self.problem.evaluate(candidate(self.problem.space, trial_info.config))
        return TrialValue(
            cost=cost(outcome),
            status=StatusType[status_name(outcome)],
            additional_info={"memory_margin": outcome.memory_margin},
        )


def make_task(problem: Problem, *, seed: int = 0, n_trials: int | None = None) -> Any:
    """A CARP-S task.

    Args:
        problem: The problem.
        seed: Seed of task and configuration space.
        n_trials: Evaluations; by default those of the published runs, the initial design included.
    """
    objective = Throughput(problem, seed=seed)
    if n_trials is None:
        n_trials = 10 + PUBLISHED_BUDGETS.get(problem.name, 100)
    return Task(
        name=f"parabolt/{problem.name}",
        objective_function=objective,
        input_space=InputSpace(objective.configspace),
        output_space=OutputSpace(n_objectives=1, objectives=("cost",)),
        optimization_resources=OptimizationResources(n_trials=n_trials),
        metadata=TaskMetadata(
            has_constraints=True,
            domain="distributed training",
            objective_function_approximation="tabular",
            has_virtual_time=False,
            deterministic=True,
            **get_search_space_info(objective.configspace),
        ),
        seed=seed,
    )
