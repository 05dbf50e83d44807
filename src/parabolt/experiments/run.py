"""A run: one optimizer on one problem with one seed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.costmodel.calibration.evidence import Evidence
from parabolt.errors import CandidatesExhaustedError
from parabolt.optimizers.registry import make_optimizer
from parabolt.problems.imputation import ImputedProblem
from parabolt.problems.noise import NoisyProblem, TorchNormalStream
from parabolt.space.configuration import Configuration
from parabolt.space.knobs import KNOBS
from parabolt.tables.sources import load_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from parabolt.experiments.protocol import Protocol
    from parabolt.outcome import BoolArray, FloatArray, IntArray, Outcome, Outcomes
    from parabolt.problems.problem import Problem


@dataclass(frozen=True)
class RunKey:
    """What makes a run what it is: two runs with the same key have the same evaluations.

    Attributes:
        problem: Name of the problem.
        optimizer: Label of the optimizer, unique in a study; its name where nothing else is said.
        seed: Seed of design, noise and optimizer.
        protocol: The protocol.
        data_version: Version of the problem's data.
        content_hash: SHA-256 of the problem's data.
        method: Name of the optimizer in the registry; the label where it is empty.
        options: Options of the optimizer as sorted pairs.
    """

    problem: str
    optimizer: str
    seed: int
    protocol: Protocol
    data_version: str
    content_hash: str
    method: str = ""
    options: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(
        cls,
        problem: Problem,
        optimizer: str,
        seed: int,
        protocol: Protocol,
        *,
        method: str = "",
        options: Mapping[str, Any] | None = None,
    ) -> RunKey:
        """The key of a run on `problem`."""
        return cls(
            problem.name,
            optimizer,
            seed,
            protocol,
            problem.version,
            problem.content_hash,
            method or optimizer,
            tuple(sorted((options or {}).items())),
        )


@dataclass(frozen=True, eq=False)
class Run:
    """Every evaluation of a finished run, in order; arrays are (t,).

    Attributes:
        key: What was run.
        optimum: Throughput of the problem's optimum, in iterations/s.
        n_initial: Size of the initial design: the first evaluations.
        sizes: What was evaluated: raw sizes (t, 9) int64, columns in the order of `KNOBS`.
        observed: Throughput as told to the optimizer: with noise, and imputed where out of memory.
        outcomes: Noiseless outcomes as the problem gave them, nothing imputed.
        recommended: Noiseless throughput of the recommendation after each evaluation; 0 where it
            is infeasible, NaN where there is none and within the initial design.
        step_time_s: Time that the optimizer itself took for each evaluation; NaN in the design.
        n_failed_fits: Fits of the optimizer's model that fell back at each evaluation, int64; it
            goes on, with a model that is worse than it should be. -1 where a log has no figure.
        was_shortened: Whether the time limit of an ask cut the proposal of each evaluation short.
    """

    key: RunKey
    optimum: float
    n_initial: int
    sizes: IntArray
    observed: FloatArray
    outcomes: Outcomes
    recommended: FloatArray
    step_time_s: FloatArray
    n_failed_fits: IntArray
    was_shortened: BoolArray

    def __len__(self) -> int:
        return len(self.observed)

    @property
    def configurations(self) -> tuple[Configuration, ...]:
        """What was evaluated."""
        rows = self.sizes.tolist()
        return tuple(Configuration(**dict(zip(KNOBS, row, strict=True))) for row in rows)


def execute(problem: Problem, key: RunKey) -> Run:
    """Runs an optimizer on a problem, as the key says.

    Args:
        problem: The noiseless problem, nothing imputed.
        key: Optimizer, seed and protocol.

    Returns:
        The run; it is shorter than the budget where the candidates are exhausted.
    """
    protocol, seed = key.protocol, key.seed
    rng = np.random.default_rng(seed)
    told = NoisyProblem(
        ImputedProblem(problem), std=protocol.noise_std, stream=TorchNormalStream(seed)
    )
    everything = problem.evaluate_many(problem.space.encoded)
    design = protocol.initial_rows(everything.is_feasible, rng)
    optimizer = make_optimizer(
        key.method,
        problem.space,
        seed=seed,
        rng=rng,
        repeats=protocol.repeats,
        **resolved_options(key),
    )
    recorder = _Recorder(problem)
    for row in design:
        configuration = problem.space.candidates[row]
        outcome = told.evaluate(configuration)
        optimizer.tell(configuration, outcome)
        recorder.add(configuration, outcome)
        recorder.note(0, was_shortened=False)
    for _ in range(protocol.n_evaluations):
        start, n_failed = time.perf_counter(), optimizer.n_failed_fits
        try:
            configuration = optimizer.ask()
        except CandidatesExhaustedError:
            break
        asked = time.perf_counter()
        outcome = told.evaluate(configuration)
        evaluated = time.perf_counter()
        optimizer.tell(configuration, outcome)
        recommendation = optimizer.recommend()
        step_time_s = time.perf_counter() - evaluated + asked - start
        recorder.add(configuration, outcome, recommendation, step_time_s)
        recorder.note(optimizer.n_failed_fits - n_failed, was_shortened=optimizer.was_shortened)
    return recorder.finish(key, len(design))


def resolved_options(key: RunKey) -> dict[str, Any]:
    """The options of a run's optimizer; tables named in `history` become their trials.

    Raises:
        UnknownNameError: For a history that no table of that name has.
    """
    options = dict(key.options)
    if "history" in options:
        tables = [load_table(name) for name in options["history"]]
        options["history"] = [Evidence(t.instance, t.space.encoded, t.outcomes) for t in tables]
    return options


class _Recorder:
    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._configurations: list[Configuration] = []
        self._observed: list[float] = []
        self._recommended: list[float] = []
        self._step_time_s: list[float] = []
        self._n_failed_fits: list[int] = []
        self._was_shortened: list[bool] = []

    def add(
        self,
        configuration: Configuration,
        outcome: Outcome,
        recommendation: Configuration | None = None,
        step_time_s: float = float("nan"),
    ) -> None:
        self._configurations.append(configuration)
        self._observed.append(outcome.throughput)
        self._recommended.append(self._value(recommendation))
        self._step_time_s.append(step_time_s)

    def note(self, n_failed_fits: int, *, was_shortened: bool) -> None:
        self._n_failed_fits.append(n_failed_fits)
        self._was_shortened.append(was_shortened)

    def finish(self, key: RunKey, n_initial: int) -> Run:
        return Run(
            key=key,
            optimum=self._problem.optimum.value,
            n_initial=n_initial,
            sizes=np.array(
                [list(c.as_dict().values()) for c in self._configurations], dtype=np.int64
            ),
            observed=np.array(self._observed),
            outcomes=self._problem.evaluate_many(self._configurations),
            recommended=np.array(self._recommended),
            step_time_s=np.array(self._step_time_s),
            n_failed_fits=np.array(self._n_failed_fits, dtype=np.int64),
            was_shortened=np.array(self._was_shortened, dtype=bool),
        )

    def _value(self, recommendation: Configuration | None) -> float:
        if recommendation is None:
            return float("nan")
        outcome = self._problem.evaluate(recommendation)
        return outcome.throughput if outcome.is_feasible else 0.0
