"""The problems in Ray Tune: a search space and a trainable.

Ray Tune's conventions: metric and mode (`"throughput"`, `"max"`) belong to `TuneConfig`, a search
space is a dict of domains, results are reported. A run that died reports a throughput of NaN, which
`get_best_result` leaves out, and `status` "oom". Seeds belong to the search algorithm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from parabolt.errors import MissingDependencyError
from parabolt.integrations.box import CandidateBox

try:
    from ray import tune
except ImportError as error:
    raise MissingDependencyError.of("ray[tune]", "ray-tune") from error

if TYPE_CHECKING:
    from collections.abc import Callable

    from parabolt.instances.search_space import SearchSpace
    from parabolt.problems.problem import Problem


def search_space(space: SearchSpace) -> dict[str, Any]:
    """Knob name to a choice among its raw sizes."""
    return {name: tune.choice(sizes) for name, sizes in CandidateBox(space).sizes.items()}


def trainable(problem: Problem) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A function trainable that tries the nearest candidate of a config.

    It gives `throughput` (iterations/s; NaN where the run died), `memory_margin` (positive where
    the run died), `status`, `configuration`, the candidate that was tried, and `is_candidate`,
    whether that was what the config said.
    """

    def try_candidate(config: dict[str, Any]) -> dict[str, Any]:
        placed = CandidateBox(problem.space).place_sizes(config)
        outcome = problem.evaluate(placed.configuration)
        return {
            "throughput": outcome.throughput,
            "memory_margin": outcome.memory_margin,
            "status": str(outcome.status),
            "configuration": str(placed.configuration),
            "is_candidate": placed.is_candidate,
        }

    return try_candidate
