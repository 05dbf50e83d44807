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

from parabolt.errors import CandidatesExhaustedError, MissingDependencyError
from parabolt.integrations.box import CandidateBox
from parabolt.integrations.library_optimizer import LibraryOptimizer
from parabolt.optimizers.told_margin import told_margin

try:
    import torch
    from ax.adapter.data_utils import DataLoaderConfig
    from ax.adapter.registry import Generators
    from ax.api.client import Client
    from ax.api.configs import ChoiceParameterConfig
    from ax.api.protocols.metric import IMetric
    from ax.api.protocols.runner import IRunner
    from ax.core.observation import ObservationFeatures
    from ax.core.trial_status import TrialStatus
    from ax.generation_strategy.external_generation_node import ExternalGenerationNode
    from ax.generation_strategy.generation_strategy import GenerationStep, GenerationStrategy
    from ax.generators.torch.botorch_modular.surrogate import SurrogateSpec
except ImportError as error:
    raise MissingDependencyError.of("ax-platform", "ax") from error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from parabolt.instances.search_space import SearchSpace
    from parabolt.outcome import FloatArray, Outcome
    from parabolt.problems.problem import Problem


#: Trials that are drawn at random before Ax has a model.
N_INITIAL = 5

#: Finished trials with a throughput that Ax needs for a model of it.
_N_NEEDED = 2


def make_client(
    space: SearchSpace, *, seed: int = 0, snap: bool = False, with_memory: bool = False
) -> Any:
    """An Ax client with the parameters, the objectives and the constraint of an instance.

    Parameters are the knobs, ordered choices of raw sizes. The client proposes candidates alone:
    the one of which Ax's acquisition function is largest. With `snap` it proposes any combination
    of sizes, as Ax does by itself, and `Runner` tries the nearest candidate.

    Args:
        space: Instance and candidates.
        seed: Seed of what is drawn.
        snap: Whether to propose combinations that are no candidates, too.
        with_memory: Whether the peak memory, in GiB, is minimised as a second objective. The
            reference point is 0 iterations/s at the memory of a GPU.
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
    constraints = ["memory_margin <= 0"]
    if with_memory:  # bounds of objectives are Ax's reference point
        capacity = space.instance.cluster.memory_gib
        constraints += ["throughput >= 0", f"peak_memory_gib <= {capacity:.17g}"]
    client.configure_optimization(
        "throughput, -peak_memory_gib" if with_memory else "throughput",
        outcome_constraints=constraints,
    )
    client.set_generation_strategy(
        GenerationStrategy(
            name="parabolt", nodes=_box_nodes(seed) if snap else [CandidateNode(space, seed)]
        )
    )
    return client


class CandidateNode(ExternalGenerationNode):
    """Proposes candidates: some at random, then that of the largest acquisition value.

    Model and acquisition function are Ax's defaults. Trials under way and tried candidates are not
    proposed again. A client with it can't be saved as JSON, which Ax allows for its own nodes only.

    Args:
        space: Instance and candidates.
        seed: Seed of what is drawn.
    """

    def __init__(self, space: SearchSpace, seed: int) -> None:
        super().__init__(name="candidates")
        box = CandidateBox(space)
        self._all = [box.sizes_of(row) for row in range(len(space))]
        self._seed = seed

    def update_generator_state(self, experiment: Any, data: Any) -> None:
        """Notes what has been tried; Ax calls it before it asks."""
        self._experiment, self._data = experiment, data

    def get_next_candidate(self, pending_parameters: list[Any]) -> Any:
        """The next candidate.

        Raises:
            CandidatesExhaustedError: If every candidate has been tried.
        """
        trials = self._experiment.trials.values()
        tried = {_text(arm.parameters): trial.status for trial in trials for arm in trial.arms}
        # Ax also calls those pending that have ended without a throughput.
        under_way = [p for p in pending_parameters if not _has_ended(tried.get(_text(p)))]
        known = tried.keys() | {_text(sizes) for sizes in under_way}
        left = [sizes for sizes in self._all if _text(sizes) not in known]
        if not left:
            raise CandidatesExhaustedError(f"all {len(self._all)} candidates have been tried")
        number = len(known)
        n_finished = self._data.df.query("metric_name == 'throughput'").trial_index.nunique()
        if number < N_INITIAL or n_finished < _N_NEEDED:
            return left[int(np.random.default_rng([self._seed, number]).integers(len(left)))]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._seed + number)
            return left[int(np.argmax(self._acquisition(left, under_way)))]

    def _acquisition(self, left: list[Any], under_way: list[Any]) -> list[float]:
        adapter = Generators.BOTORCH_MODULAR(
            experiment=self._experiment, data=self._data, **_model_options()
        )
        pending = {name: _features(under_way) for name in adapter.outcomes} if under_way else None
        values: list[float] = adapter.evaluate_acquisition_function(
            _features(left), pending_observations=pending
        )
        return values


def _features(parameters: list[Any]) -> list[Any]:
    """Parameters in Ax's words; new ones for each call, since Ax changes them."""
    return [ObservationFeatures(parameters=dict(sizes)) for sizes in parameters]


def _has_ended(status: Any) -> bool:
    return status is not None and status.is_terminal


def _model_options() -> dict[str, Any]:
    """What Ax's models need to learn from runs that died, which have a margin and no throughput.

    - Models of the figures apart. Ax would take one for both where a fold of its cross validation
      leaves out the only run that died, and fail.
    - Abandoned trials: `client.run_trials` abandons one that lacks a figure.
    """
    return {
        "surrogate_spec": SurrogateSpec(allow_batched_models=False),
        "data_loader_config": DataLoaderConfig(fit_abandoned=True),
    }


def _box_nodes(seed: int) -> list[Any]:
    """Ax's default strategy, but for `_model_options`."""
    return [
        GenerationStep(
            generator=Generators.SOBOL,
            num_trials=N_INITIAL,
            min_trials_observed=_N_NEEDED,
            generator_kwargs={"seed": seed},
            use_all_trials_in_exp=True,
            should_deduplicate=True,
        ),
        GenerationStep(
            generator=Generators.BOTORCH_MODULAR,
            num_trials=-1,
            generator_kwargs=_model_options(),
            should_deduplicate=True,
        ),
    ]


def _text(sizes: Mapping[str, Any]) -> str:
    return str(sorted(sizes.items()))


def raw_data(outcome: Outcome, *, with_memory: bool = False) -> dict[str, tuple[float, float]]:
    """What `client.complete_trial` takes: the metrics that there are, noiseless (SEM 0).

    Ax proposes nothing before it has data of the constraint; see `told_margin` for a finished run
    whose memory nobody reported.

    Args:
        outcome: What came of a trial.
        with_memory: Whether the peak memory is an objective of the client.
    """
    found = {"throughput": outcome.throughput, "memory_margin": told_margin(outcome)}
    if with_memory:
        found["peak_memory_gib"] = outcome.peak_memory_gib
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
            **{name: pair[0] for name, pair in raw_data(outcome, with_memory=True).items()},
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
            self._client = make_client(self.space, seed=seed, snap=True)
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
