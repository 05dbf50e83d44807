"""The problems in SMAC3, and SMAC3 in our studies.

SMAC's conventions: it minimises a cost, here -throughput in iterations/s; a run that died has the
status `MEMORYOUT` and the scenario's crash cost, here 0 (it made no iteration, and 0 is more than
the cost of any run that finished); seeds belong to the scenario. Its search space has the validity
rules as forbidden clauses, so it proposes candidates only.
"""

from __future__ import annotations

import tempfile
import warnings
from typing import TYPE_CHECKING, Any

from parabolt.errors import MissingDependencyError
from parabolt.integrations.library_optimizer import LibraryOptimizer

try:
    from ConfigSpace import Configuration as SpaceConfiguration
    from smac import HyperparameterOptimizationFacade, Scenario
    from smac.main.exceptions import ConfigurationSpaceExhaustedException
    from smac.runhistory import StatusType, TrialInfo, TrialValue
except ImportError as error:
    raise MissingDependencyError.of("smac", "smac") from error

from parabolt.integrations.configspace import candidate, configuration_space
from parabolt.integrations.cost import FAILURE_COST, cost, status_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from parabolt.instances.search_space import SearchSpace
    from parabolt.outcome import FloatArray, Outcome
    from parabolt.problems.problem import Problem


def make_scenario(space: SearchSpace, *, seed: int = 0, **options: Any) -> Any:
    """A deterministic `Scenario` over the candidates, with the crash cost set.

    Args:
        space: Instance and candidates.
        seed: Seed of scenario and configuration space.
        **options: Other arguments of `Scenario`, such as `n_trials` and `output_directory`.
    """
    return Scenario(
        configuration_space(space, seed=seed),
        deterministic=True,
        seed=seed,
        crash_cost=FAILURE_COST,
        **options,
    )


def trial_value(outcome: Outcome) -> Any:
    """What `smac.tell` takes: the cost and the status."""
    return TrialValue(cost=cost(outcome), status=StatusType[status_name(outcome)])


def try_config(problem: Problem, config: Mapping[str, Any]) -> Outcome:
    """The outcome of a configuration of SMAC's."""
    return problem.evaluate(candidate(problem.space, config))


def target_function(problem: Problem) -> Callable[..., float]:
    """A target function for a facade's `optimize`.

    It can't return a status: a run that died returns the crash cost. To have SMAC note `MEMORYOUT`,
    ask, and tell `trial_value(try_config(problem, info.config))`.
    """

    def cost_of(config: Any, seed: int = 0) -> float:  # noqa: ARG001 - SMAC passes it
        return cost(try_config(problem, config))

    return cost_of


class SMACOptimizer(LibraryOptimizer):
    """SMAC3's facade for hyperparameters: random forest, log EI, local search.

    SMAC never asks for a configuration twice. Once it knows all candidates, and where it finds no
    new one, proposals are random.

    Args:
        space: Instance and candidates.
        budget: Evaluations that SMAC plans for.
        **options: `n_initial`, `seed` and `repeats`, see `DesignedOptimizer`.
    """

    name = "smac"
    libraries = ("smac", "ConfigSpace", "scikit-learn")

    def __init__(self, space: SearchSpace, *, budget: int = 1000, **options: Any) -> None:
        super().__init__(space, **options)
        self.budget = budget

    def _set_up(self, seed: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="parabolt-smac-")  # SMAC always writes
        scenario = make_scenario(
            self.space, seed=seed, n_trials=self.budget, output_directory=self._folder.name
        )
        facade = HyperparameterOptimizationFacade
        self._configspace = scenario.configspace
        self._seed: int | None = None
        self._smac = facade(
            scenario,
            _unused,
            initial_design=facade.get_initial_design(
                scenario, n_configs=0, additional_configs=self._design()
            ),
            intensifier=facade.get_intensifier(scenario, max_config_calls=1),
            logging_level=False,
            overwrite=True,
        )

    def _config(self, row: int) -> Any:
        return SpaceConfiguration(self._configspace, values=self.box.sizes_of(row))

    def _design(self) -> list[Any]:
        """What was tried before: SMAC finds it in its history and doesn't ask for it again."""
        rows = dict.fromkeys(row for row, _ in self._told_before)
        return [self._config(row) for row in rows or [0]]  # SMAC insists on one

    def _propose(self) -> tuple[Any, FloatArray]:
        if len(set(self.history.rows.tolist())) == len(self.space):
            return self._random_proposal()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                info = self._smac.ask()
            except (ConfigurationSpaceExhaustedException, StopIteration):
                return self._random_proposal()  # SMAC's generator of trials ends with the first one
        return info, self.box.encode(dict(info.config))

    def _report(self, proposal: Any, row: int, outcome: Outcome) -> None:
        config = self._config(row)
        if proposal is None or proposal.config != config:
            proposal = TrialInfo(config, seed=getattr(proposal, "seed", 0))
        self._smac.tell(proposal, trial_value(outcome), save=False)


def _unused(config: Any, seed: int = 0) -> float:  # noqa: ARG001 - a facade insists on it
    raise AssertionError("asked and told")
