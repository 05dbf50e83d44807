"""The problems in Ax, and Ax in our studies.

Ax's conventions: the objective's sign is its direction (`"throughput"` is maximised), an outcome
constraint is an inequality (`"memory_margin <= 0"`), a trial may be completed with part of its
metrics. A run that died reports its margin and no throughput. The seed belongs to the `Client`.
"""

from __future__ import annotations

import logging
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.errors import MissingDependencyError
from parabolt.integrations.box import CandidateBox
from parabolt.integrations.library_optimizer import LibraryOptimizer
from parabolt.optimizers.told_margin import told_margin

try:
    import torch
    from ax.api.client import Client
    from ax.api.configs import ChoiceParameterConfig
    from ax.api.protocols.metric import IMetric
    from ax.api.protocols.runner import IRunner
    from ax.core.trial_status import TrialStatus
except ImportError as error:
    raise MissingDependencyError.of("ax-platform", "ax") from error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from parabolt.instances.search_space import SearchSpace
    from parabolt.outcome import FloatArray, Outcome
    from parabolt.problems.problem import Problem


def make_client(space: SearchSpace, *, seed: int = 0) -> Any:
    """An Ax client with the parameters, the objective and the constraint of an instance.

    Parameters are the knobs, ordered choices of raw sizes.
    """
    client = Client(random_seed=seed)
    client.configure_experiment(
        name=space.instance.name,
        parameters=[
            ChoiceParameterConfig(
                name=axis.knob.name,
                values=[axis.knob.plain(value) for value in axis.values],
                parameter_type="str" if axis.knob.is_named else "int",
                is_ordered=not axis.is_choice,
            )
            for axis in space.instance.encoding.axes
        ],
    )
    client.configure_optimization("throughput", outcome_constraints=["memory_margin <= 0"])
    return client


def raw_data(outcome: Outcome) -> dict[str, tuple[float, float]]:
    """What `client.complete_trial` takes: the metrics that there are, noiseless (SEM 0).

    Ax proposes nothing before it has data of the constraint; see `told_margin` for a finished run
    whose memory nobody reported.
    """
    found = {"throughput": outcome.throughput, "memory_margin": told_margin(outcome)}
    return {name: (value, 0.0) for name, value in found.items() if np.isfinite(value)}


class Runner(IRunner):
    """Tries the nearest candidate of a parameterization, for `client.run_trials`.

    Its metadata say what was tried (`configuration`), whether that was what Ax asked for
    (`is_candidate`), and how it ended (`status`).

    Args:
        problem: The problem.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._box = CandidateBox(problem.space)

    def run_trial(self, trial_index: int, parameterization: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG002 - Ax's signature
        """Tries a candidate; the metadata hold the figures."""
        placed = self._box.place_sizes(parameterization)
        outcome = self.problem.evaluate(placed.configuration)
        return {
            "configuration": str(placed.configuration),
            "is_candidate": placed.is_candidate,
            "status": str(outcome.status),
            **{name: pair[0] for name, pair in raw_data(outcome).items()},
        }

    def poll_trial(self, trial_index: int, trial_metadata: Mapping[str, Any]) -> Any:  # noqa: ARG002 - Ax's signature
        """A look-up is over as soon as it is made."""
        return TrialStatus.COMPLETED

    def stop_trial(self, trial_index: int, trial_metadata: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG002 - Ax's signature
        """There is nothing to stop."""
        return {}


class Metric(IMetric):
    """One figure of what `Runner` tried; an error, which Ax notes, where there is none."""

    def fetch(
        self,
        trial_index: int,  # noqa: ARG002 - Ax's signature
        trial_metadata: Mapping[str, Any],
    ) -> tuple[int, tuple[float, float]]:
        """The figure, noiseless, at progression 0."""
        return 0, (float(trial_metadata[self.name]), 0.0)


class AxOptimizer(LibraryOptimizer):
    """Ax's default Bayesian optimization; what was tried is told in place of what was asked.

    A proposal that was repaired is abandoned, and the candidate attached as a trial of its own. A
    run that died reports its margin, and its throughput only if that was imputed. Ax can't model an
    objective that it has no data of, so until there is a throughput proposals are random.
    """

    name = "ax"
    libraries = ("ax-platform", "botorch", "torch")

    def _set_up(self, seed: int) -> None:
        self._torch_seed = seed
        with _quiet():
            self._client = make_client(self.space, seed=seed)
            self._client.configure_generation_strategy(
                method="fast",
                initialization_budget=self.n_initial,
                initialization_random_seed=seed,
                initialize_with_center=False,
            )

    def _propose(self) -> tuple[Any, FloatArray]:
        if not np.isfinite(self.history.throughput).any():
            return self._random_proposal()
        with _quiet(), torch.random.fork_rng(devices=[]):
            self._torch_seed += 1
            torch.manual_seed(self._torch_seed)
            ((index, sizes),) = self._client.get_next_trials(max_trials=1).items()
        return (index, sizes), self.box.encode(sizes)

    def _report(self, proposal: Any, row: int, outcome: Outcome) -> None:
        sizes = self.box.sizes_of(row)
        with _quiet():
            if proposal is not None and proposal[1] == sizes:
                index = proposal[0]
            else:
                if proposal is not None:
                    self._client.mark_trial_abandoned(proposal[0])
                index = self._client.attach_trial(sizes)
            if outcome.status.is_definite:
                self._client.complete_trial(index, raw_data=raw_data(outcome))
            else:
                self._client.mark_trial_failed(index)


@contextmanager
def _quiet() -> Iterator[None]:
    """Ax tells every step of a client."""
    logger = logging.getLogger("ax")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
