"""A run: one optimizer on one problem with one seed."""

from __future__ import annotations

import heapq
import math
import time
from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from parabolt.errors import CandidatesExhaustedError
from parabolt.experiments.environment import environment
from parabolt.experiments.run_key import RunKey
from parabolt.experiments.transfer import options_of_run
from parabolt.optimizers.registry import make_optimizer
from parabolt.outcome import Outcome, Outcomes, Status
from parabolt.problems.feedback import FailureOnlyProblem
from parabolt.problems.imputation import ImputedProblem
from parabolt.problems.noise import NoisyProblem, TorchNormalStream
from parabolt.space.configurations import Configurations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from parabolt.experiments.protocol import Protocol
    from parabolt.optimizers.optimizer import Optimizer
    from parabolt.outcome import BoolArray, FloatArray, IntArray
    from parabolt.problems.problem import Problem
    from parabolt.space.configuration import Configuration

__all__ = ["Run", "RunKey", "execute", "told_problem", "trial_time_s"]


@dataclass(frozen=True, eq=False)
class Run:
    """Every evaluation of a finished run, in the order in which it was told; arrays are (t,).

    Attributes:
        key: What was run.
        optimum: Throughput of the problem's optimum, in iterations/s.
        n_initial: Size of the initial design: the first evaluations.
        configurations: What was evaluated; none of a stand-in.
        observed: Throughput as told to the optimizer: with noise, and as the protocol's `feedback`
            says where a trial ran out of memory.
        outcomes: Noiseless outcomes as the problem gave them, nothing imputed.
        recommended: Noiseless throughput of the recommendation after each evaluation; 0 where it
            is infeasible, NaN where there is none and within the initial design.
        step_time_s: Time that the optimizer itself took for each evaluation; NaN in the design.
        n_failed_fits: Fits of the optimizer's model that fell back at each evaluation, int64; it
            goes on, with a model that is worse than it should be. -1 where a log has no figure.
        was_shortened: Whether the time limit of an ask cut the proposal of each evaluation short.
        start_s: When each trial began on the simulated clock, in seconds; NaN where unknown.
        end_s: When it ended, ascending.
        n_gpus: GPUs that a trial occupies; 0 where unknown.
        environment: Versions, system and processor that computed it, see `environment`.
    """

    key: RunKey
    optimum: float
    n_initial: int
    configurations: Configurations
    observed: FloatArray
    outcomes: Outcomes
    recommended: FloatArray
    step_time_s: FloatArray
    n_failed_fits: IntArray
    was_shortened: BoolArray
    start_s: FloatArray
    end_s: FloatArray
    n_gpus: int
    environment: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.observed)

    @property
    def is_stand_in(self) -> bool:
        """Whether it stands for a failed run, see `without_finds`: it has no configurations."""
        return not len(self.configurations)

    @property
    def gpu_hours(self) -> FloatArray:
        """GPU-hours of the trials that have ended with each evaluation, (t,); NaN where unknown."""
        seconds = np.cumsum(self.end_s - self.start_s)
        hours: FloatArray = seconds * (self.n_gpus or math.nan) / 3600.0
        return hours

    def cut(self, n_evaluations: int) -> Run:
        """The same run with a smaller budget: its first evaluations.

        Only for one worker: with several, a smaller budget ends with other trials under way.
        """
        n = min(len(self), self.n_initial + n_evaluations)
        arrays = {
            name: getattr(self, name)[:n]
            for name in ("configurations", "observed", "recommended", "step_time_s",
                         "n_failed_fits", "was_shortened", "start_s", "end_s")
        }  # fmt: skip
        protocol = replace(self.key.protocol, n_evaluations=n_evaluations)
        return replace(
            self,
            key=replace(self.key, protocol=protocol),
            outcomes=self.outcomes.take(np.arange(n)),
            **arrays,
        )

    @classmethod
    def without_finds(cls, key: RunKey, optimum: float, n_gpus: int = 0) -> Run:
        """A run that found nothing: how a failed run counts in a comparison.

        Every evaluation of its budget is a crash without a figure.
        """
        n = key.protocol.n_initial + key.protocol.n_evaluations
        return cls(
            key=key,
            optimum=optimum,
            n_initial=key.protocol.n_initial,
            configurations=Configurations({}, n=0),
            observed=np.full(n, np.nan),
            outcomes=Outcomes.of([Outcome(Status.CRASHED)] * n),
            recommended=np.full(n, np.nan),
            step_time_s=np.full(n, np.nan),
            n_failed_fits=np.full(n, -1),
            was_shortened=np.zeros(n, dtype=bool),
            start_s=np.full(n, np.nan),
            end_s=np.full(n, np.nan),
            n_gpus=n_gpus,
        )


def execute(problem: Problem, key: RunKey, source: object | None = None) -> Run:
    """Runs an optimizer on a problem, as the key says.

    Args:
        problem: The noiseless problem, nothing imputed.
        key: Optimizer, seed and protocol.
        source: What to make the optimizer of, see `optimizer_factory`; by default what the key's
            method names.

    Returns:
        The run; it is shorter than the budget where the candidates are exhausted.
    """
    rng = np.random.default_rng(key.seed)
    everything = problem.evaluate_many(problem.space.encoded)
    design = key.protocol.initial_rows(everything.is_feasible, rng)
    optimizer = make_optimizer(
        key.method if source is None else source,
        problem.space,
        seed=key.seed,
        rng=rng,
        repeats=key.protocol.repeats,
        **options_of_run(problem.instance, key.protocol, dict(key.options)),
    )
    execution = _Execution(problem, key, optimizer)
    execution.evaluate_design([problem.space.candidates[row] for row in design])
    execution.search()
    libraries = getattr(optimizer, "libraries", ())
    return execution.recorder.finish(key, len(design), libraries)


def told_problem(problem: Problem, protocol: Protocol, seed: int) -> Problem:
    """What an optimizer is told: the problem with the protocol's feedback and noise."""
    told = problem
    if protocol.feedback == "imputed":
        told = ImputedProblem(problem)
    elif protocol.feedback == "status":
        told = FailureOnlyProblem(problem)
    return NoisyProblem(told, std=protocol.noise_std, stream=TorchNormalStream(seed))


def trial_time_s(outcome: Outcome, protocol: Protocol) -> float:
    """How long a trial takes on the simulated clock, see `Protocol.trial_steps`."""
    if math.isfinite(outcome.wall_time_s):
        return outcome.wall_time_s
    steps_s = protocol.trial_steps / outcome.throughput if outcome.is_feasible else 0.0
    return protocol.trial_startup_s + steps_s


@dataclass(order=True)
class _Trial:
    """A trial under way; the one that ends first is the least."""

    end_s: float
    number: int
    start_s: float = field(compare=False)
    configuration: Configuration = field(compare=False)
    told: Outcome = field(compare=False)
    ask_time_s: float = field(compare=False, default=0.0)
    n_failed_fits: int = field(compare=False, default=0)
    was_shortened: bool = field(compare=False, default=False)


class _Execution:
    """Workers on a simulated clock. With one worker it is the published loop, call by call."""

    def __init__(self, problem: Problem, key: RunKey, optimizer: Optimizer) -> None:
        self._problem, self._protocol, self._optimizer = problem, key.protocol, optimizer
        self._told = told_problem(problem, key.protocol, key.seed)
        self._under_way: list[_Trial] = []
        self._now_s = 0.0
        self._n_started = 0
        self.recorder = _Recorder(problem)

    def evaluate_design(self, design: list[Configuration]) -> None:
        """Tells the initial design; the search begins when all of it is told."""
        waiting = deque(design)
        while waiting or self._under_way:
            while waiting and self._n_free:
                self._start(waiting.popleft())
            trial = self._end()
            self._optimizer.tell(trial.configuration, trial.told)
            self.recorder.add(trial)

    def search(self) -> None:
        """Asks and tells until the budget is spent or nothing is left."""
        n_left = self._protocol.n_evaluations
        while n_left or self._under_way:
            n_left = self._ask(n_left)
            if not self._under_way:
                break
            trial, n_failed = self._end(), self._optimizer.n_failed_fits
            start = time.perf_counter()
            self._optimizer.tell(trial.configuration, trial.told)
            recommendation = self._optimizer.recommend()
            step_time_s = trial.ask_time_s + time.perf_counter() - start
            trial.n_failed_fits += self._optimizer.n_failed_fits - n_failed
            self.recorder.add(trial, recommendation, step_time_s)

    @property
    def _n_free(self) -> int:
        return self._protocol.workers - len(self._under_way)

    def _ask(self, n_left: int) -> int:
        """Starts trials on free workers, as the schedule says; returns what is left of the budget.

        Nothing is left where the candidates are exhausted.
        """
        is_batch = self._protocol.schedule == "batch" and self._protocol.workers > 1
        while n_left and self._n_free and not (is_batch and self._under_way):
            n_failed, start = self._optimizer.n_failed_fits, time.perf_counter()
            try:
                if is_batch:
                    asked = self._optimizer.ask(min(self._n_free, n_left))
                else:
                    asked = [self._optimizer.ask()]
            except CandidatesExhaustedError:
                return 0
            ask_time_s = (time.perf_counter() - start) / len(asked)
            for configuration in asked:
                trial = self._start(configuration)
                trial.ask_time_s = ask_time_s
                trial.was_shortened = self._optimizer.was_shortened
            trial.n_failed_fits = self._optimizer.n_failed_fits - n_failed
            n_left -= len(asked)
        return n_left

    def _start(self, configuration: Configuration) -> _Trial:
        duration_s = trial_time_s(self._problem.evaluate(configuration), self._protocol)
        told = self._told.evaluate(configuration)
        trial = _Trial(self._now_s + duration_s, self._n_started, self._now_s, configuration, told)
        self._n_started += 1
        heapq.heappush(self._under_way, trial)
        return trial

    def _end(self) -> _Trial:
        trial = heapq.heappop(self._under_way)
        self._now_s = trial.end_s
        return trial


class _Recorder:
    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._trials: list[_Trial] = []
        self._recommended: list[float] = []
        self._step_time_s: list[float] = []

    def add(
        self,
        trial: _Trial,
        recommendation: Configuration | None = None,
        step_time_s: float = math.nan,
    ) -> None:
        self._trials.append(trial)
        self._recommended.append(self._value(recommendation))
        self._step_time_s.append(step_time_s)

    def finish(self, key: RunKey, n_initial: int, libraries: Sequence[str]) -> Run:
        trials = self._trials
        configurations = [trial.configuration for trial in trials]
        return Run(
            key=key,
            optimum=self._problem.optimum.value,
            n_initial=n_initial,
            configurations=Configurations.of(configurations),
            observed=np.array([trial.told.throughput for trial in trials]),
            outcomes=self._problem.evaluate_many(configurations),
            recommended=np.array(self._recommended),
            step_time_s=np.array(self._step_time_s),
            n_failed_fits=np.array([trial.n_failed_fits for trial in trials], dtype=np.int64),
            was_shortened=np.array([trial.was_shortened for trial in trials], dtype=bool),
            start_s=np.array([trial.start_s for trial in trials]),
            end_s=np.array([trial.end_s for trial in trials]),
            n_gpus=self._problem.instance.cluster.n_gpus,
            environment=environment(libraries),
        )

    def _value(self, recommendation: Configuration | None) -> float:
        if recommendation is None:
            return math.nan
        outcome = self._problem.evaluate(recommendation)
        return outcome.throughput if outcome.is_feasible else 0.0
