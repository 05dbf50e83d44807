"""Which parallelism configuration trains this LLM fastest on this cluster?

    import parabolt

    problem = parabolt.load_problem("pco32")
    optimizer = parabolt.make_optimizer("logeic", problem.space, seed=0)
    for _ in range(50):
        configuration = optimizer.ask()
        optimizer.tell(configuration, problem.evaluate(configuration))
    print(optimizer.recommend(), problem.optimum)

Names are imported when they are first used, so that `import parabolt` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parabolt.costmodel.calibration.calibration import Calibration
    from parabolt.costmodel.calibration.evidence import Evidence
    from parabolt.costmodel.predictor import CostModel
    from parabolt.errors import (
        CandidatesExhaustedError,
        InstanceError,
        InvalidConfigurationError,
        MissingConfigurationError,
        MissingDependencyError,
        ObservationError,
        OptionError,
        ParaboltError,
        TableError,
        UnknownNameError,
    )
    from parabolt.experiments.protocol import Protocol
    from parabolt.experiments.study_call import run_study
    from parabolt.instances.catalogue import instance_names, load_instance
    from parabolt.instances.model_shape import ModelShape
    from parabolt.instances.search_space import SearchSpace
    from parabolt.instances.specs import Cluster, Instance, Workload
    from parabolt.optimizers.optimizer import Optimizer
    from parabolt.optimizers.registry import make_optimizer, optimizer_names
    from parabolt.outcome import Outcome, Outcomes, Source, Status
    from parabolt.planner.plan import make_plan
    from parabolt.problems.imputation import ImputedProblem
    from parabolt.problems.noise import NoisyProblem
    from parabolt.problems.problem import Optimum, Problem
    from parabolt.problems.registry import load_problem, problem_names
    from parabolt.problems.simulated import SimulatedProblem
    from parabolt.problems.snapping import SnappedProblem
    from parabolt.problems.suites import Suite, load_suite
    from parabolt.problems.tabular import TabularProblem
    from parabolt.space.configuration import Configuration
    from parabolt.tables.sources import load_table
    from parabolt.tables.table import Table

__version__ = "0.2.0"

_MODULES: dict[str, tuple[str, ...]] = {
    "errors": (
        "CandidatesExhaustedError",
        "InstanceError",
        "InvalidConfigurationError",
        "MissingConfigurationError",
        "MissingDependencyError",
        "ObservationError",
        "OptionError",
        "ParaboltError",
        "TableError",
        "UnknownNameError",
    ),
    "costmodel.calibration.calibration": ("Calibration",),
    "costmodel.calibration.evidence": ("Evidence",),
    "costmodel.predictor": ("CostModel",),
    "experiments.protocol": ("Protocol",),
    "experiments.study_call": ("run_study",),
    "instances.catalogue": ("instance_names", "load_instance"),
    "instances.search_space": ("SearchSpace",),
    "instances.model_shape": ("ModelShape",),
    "instances.specs": ("Cluster", "Instance", "Workload"),
    "optimizers.optimizer": ("Optimizer",),
    "optimizers.registry": ("make_optimizer", "optimizer_names"),
    "outcome": ("Outcome", "Outcomes", "Source", "Status"),
    "planner.plan": ("make_plan",),
    "problems.imputation": ("ImputedProblem",),
    "problems.noise": ("NoisyProblem",),
    "problems.problem": ("Optimum", "Problem"),
    "problems.registry": ("load_problem", "problem_names"),
    "problems.simulated": ("SimulatedProblem",),
    "problems.suites": ("Suite", "load_suite"),
    "problems.snapping": ("SnappedProblem",),
    "problems.tabular": ("TabularProblem",),
    "space.configuration": ("Configuration",),
    "tables.sources": ("load_table",),
    "tables.table": ("Table",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Calibration",
    "CandidatesExhaustedError",
    "Cluster",
    "Configuration",
    "CostModel",
    "Evidence",
    "ImputedProblem",
    "Instance",
    "InstanceError",
    "InvalidConfigurationError",
    "MissingConfigurationError",
    "MissingDependencyError",
    "ModelShape",
    "NoisyProblem",
    "ObservationError",
    "Optimizer",
    "Optimum",
    "OptionError",
    "Outcome",
    "Outcomes",
    "ParaboltError",
    "Problem",
    "Protocol",
    "SearchSpace",
    "SimulatedProblem",
    "SnappedProblem",
    "Source",
    "Status",
    "Suite",
    "Table",
    "TableError",
    "TabularProblem",
    "UnknownNameError",
    "Workload",
    "__version__",
    "instance_names",
    "load_instance",
    "load_problem",
    "load_suite",
    "load_table",
    "make_optimizer",
    "make_plan",
    "optimizer_names",
    "problem_names",
    "run_study",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'parabolt' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"parabolt.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
