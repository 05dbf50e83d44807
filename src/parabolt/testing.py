"""The contract that every optimizer keeps, as tests to inherit from.

    from parabolt.testing import OptimizerContract

    class TestMyOptimizer(OptimizerContract):
        def make_optimizer(self, space, **options):
            return MyOptimizer(space, **options)

pytest finds the inherited tests. They run on the candidates of pco32 and on small cut-outs of it.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import cloudpickle
import joblib
import numpy as np

from parabolt.errors import (
    CandidatesExhaustedError,
    InvalidConfigurationError,
    ObservationError,
    ParaboltError,
)
from parabolt.instances.search_space import SearchSpace
from parabolt.outcome import Outcome, Status
from parabolt.problems.registry import load_problem
from parabolt.space.configuration import Configuration

if TYPE_CHECKING:
    from collections.abc import Callable

    from parabolt.optimizers.optimizer import Optimizer

    Measure = Callable[[Configuration], Outcome]


def _require(holds: bool, message: str) -> None:  # noqa: FBT001 - reads like an assertion
    if not holds:
        raise AssertionError(message)


def _raises(expected: type[ParaboltError], action: Callable[[], object], when: str) -> None:
    try:
        action()
    except expected:
        return
    raise AssertionError(f"expected {expected.__name__} {when}, got no error")


def _by_value(method: Any) -> bytes:
    """A pickle of a bound method, for a process that can't import the module of the tests."""
    module = sys.modules[type(method.__self__).__module__]
    cloudpickle.register_pickle_by_value(module)
    try:
        pickled: bytes = cloudpickle.dumps(method)
        return pickled
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def _call(pickled: bytes, seed: int) -> list[Configuration]:
    found: list[Configuration] = cloudpickle.loads(pickled)(seed)
    return found


def _always_oom(_: Configuration) -> Outcome:
    return Outcome.oom()


def _constant(_: Configuration) -> Outcome:
    return Outcome.ok(0.25, memory_margin=-0.25)


def cut_out(n: int) -> SearchSpace:
    """A search space of n candidates spread over those of pco32."""
    space = load_problem("pco32").space
    return SearchSpace(space.instance, space.encoded[:: len(space) // n][:n])


def drive(optimizer: Optimizer, measure: Measure, n: int) -> list[Configuration]:
    """Asks and tells n times; returns what was asked."""
    asked = []
    for _ in range(n):
        configuration = optimizer.ask()
        asked.append(configuration)
        optimizer.tell(configuration, measure(configuration))
    return asked


class OptimizerContract:
    """Inherit, define `make_optimizer`, and let pytest run the tests."""

    #: Evaluations of the longer tests; more than any initial design.
    n_evaluations = 16

    def make_optimizer(self, space: SearchSpace, **options: Any) -> Optimizer:
        """A fresh optimizer; `options` are `seed` and `repeats`."""
        raise NotImplementedError

    def test_asks_for_candidates_only(self) -> None:
        """Every proposal is a candidate, and none comes twice."""
        problem = load_problem("pco32")
        optimizer = self.make_optimizer(problem.space, seed=0)
        asked = drive(optimizer, problem.evaluate, self.n_evaluations)
        rows = [problem.space.row(configuration) for configuration in asked]
        _require(len(set(rows)) == len(rows), "a candidate was proposed twice")

    def test_recommends_something_feasible(self) -> None:
        """After feasible observations there is a recommendation among the candidates."""
        problem = load_problem("pco32")
        optimizer = self.make_optimizer(problem.space, seed=1)
        drive(optimizer, problem.evaluate, self.n_evaluations)
        recommendation = optimizer.recommend()
        _require(recommendation in problem.space.candidates, f"got {recommendation}")

    def test_same_seed_same_sequence_in_another_process(self) -> None:
        """A seed fixes the sequence, whichever process runs it."""
        sequence = _by_value(self._sequence)
        first, again = joblib.Parallel(n_jobs=2)(
            joblib.delayed(_call)(sequence, seed) for seed in (3, 3)
        )
        _require(first == self._sequence(3), "a seed gave another sequence in another process")
        _require(first == again, "a seed gave two sequences")

    def _sequence(self, seed: int) -> list[Configuration]:
        problem = load_problem("pco32")
        optimizer = self.make_optimizer(problem.space, seed=seed)
        return drive(optimizer, problem.evaluate, self.n_evaluations)

    def test_global_random_state_has_no_say(self) -> None:
        """Numpy's global generator is neither read nor moved."""
        np.random.seed(0)  # noqa: NPY002 - the global generator is what is tested
        before = np.random.get_state()[1].copy()  # type: ignore[index] # noqa: NPY002
        first = self._sequence(5)
        after = np.random.get_state()[1]  # type: ignore[index] # noqa: NPY002
        _require(bool(np.array_equal(before, after)), "the global generator was moved")
        np.random.seed(1)  # noqa: NPY002
        _require(first == self._sequence(5), "the global generator was read")

    def test_survives_all_oom(self) -> None:
        """Nothing but out-of-memory runs: goes on asking and recommends nothing."""
        optimizer = self.make_optimizer(load_problem("pco32").space, seed=0)
        drive(optimizer, _always_oom, self.n_evaluations)
        _require(optimizer.recommend() is None, "recommended a candidate after all-OOM")

    def test_survives_constant_throughput(self) -> None:
        """All observations alike: goes on asking."""
        optimizer = self.make_optimizer(load_problem("pco32").space, seed=0)
        drive(optimizer, _constant, self.n_evaluations)
        _require(optimizer.recommend() is not None, "recommended nothing")

    def test_survives_a_single_observation(self) -> None:
        """One observation, then a recommendation and a proposal."""
        space = load_problem("pco32").space
        for measure in (_constant, _always_oom):
            optimizer = self.make_optimizer(space, seed=0)
            optimizer.tell(space.candidates[7], measure(space.candidates[7]))
            optimizer.recommend()
            _require(optimizer.ask() in space.candidates, "proposed no candidate")

    def test_asks_for_batches(self) -> None:
        """`ask(n)` gives n distinct candidates, also while others are pending."""
        problem = load_problem("pco32")
        optimizer = self.make_optimizer(problem.space, seed=0)
        drive(optimizer, problem.evaluate, self.n_evaluations)
        batch = optimizer.ask(4) + optimizer.ask(1)
        _require(len(set(batch)) == 5, f"expected 5 distinct candidates, got {batch}")
        for configuration in reversed(batch):
            optimizer.tell(configuration, problem.evaluate(configuration))
        _require(optimizer.ask() not in batch, "proposed a told candidate again")

    def test_exhausts_cleanly(self) -> None:
        """A small candidate set is proposed once over, then `ask` raises."""
        problem, space = load_problem("pco32"), cut_out(14)
        optimizer = self.make_optimizer(space, seed=0)
        asked = drive(optimizer, problem.evaluate, 12)
        rest = optimizer.ask(5)
        _require(set(asked) | set(rest) == set(space.candidates), "a candidate was left out")
        _raises(CandidatesExhaustedError, optimizer.ask, "with nothing left")

    def test_goes_on_where_repeats_are_allowed(self) -> None:
        """With `repeats="allow"` a small candidate set never ends."""
        problem, space = load_problem("pco32"), cut_out(3)
        optimizer = self.make_optimizer(space, seed=0, repeats="allow")
        drive(optimizer, problem.evaluate, self.n_evaluations)

    def test_works_with_one_candidate(self) -> None:
        """A single candidate is proposed, recommended, and then nothing is left."""
        problem, space = load_problem("pco32"), cut_out(1)
        optimizer = self.make_optimizer(space, seed=0)
        asked = drive(optimizer, _constant, 1)
        _require(optimizer.recommend() == asked[0], "did not recommend the only candidate")
        _raises(CandidatesExhaustedError, optimizer.ask, "with nothing left")
        _require(problem.space.row(asked[0]) >= 0, "proposed no candidate")

    def test_hears_what_it_did_not_ask(self) -> None:
        """Candidates that were never asked may be told, also twice, and count."""
        problem = load_problem("pco32")
        optimizer = self.make_optimizer(problem.space, seed=0)
        told = [problem.space.candidates[row] for row in range(0, 300, 20)]
        for configuration in [*told, told[0]]:
            optimizer.tell(configuration, problem.evaluate(configuration))
        _require(optimizer.ask() not in told, "proposed a told candidate")

    def test_refuses_contradictions(self) -> None:
        """Outcomes that contradict themselves, and an invalid configuration, are refused."""
        space = load_problem("pco32").space
        optimizer = self.make_optimizer(space, seed=0)
        configuration = space.candidates[0]
        bad_outcomes = (
            *(Outcome.ok(x) for x in (math.nan, math.inf, -math.inf, -1.0, 0.0)),
            Outcome.ok(1.0, memory_margin=0.5),
            Outcome(Status.OOM, memory_margin=-0.9),
            Outcome(Status.CRASHED, throughput=1.0),
        )
        for bad in bad_outcomes:
            _raises(
                ObservationError,
                lambda bad=bad: optimizer.tell(configuration, bad),  # type: ignore[misc]
                f"for {bad}",
            )
        invalid = Configuration(dp=2, bucket=64)
        _raises(
            InvalidConfigurationError,
            lambda: optimizer.tell(invalid, _constant(invalid)),
            "for an invalid configuration",
        )
        _require(len(optimizer.history) == 0, "a refused observation was kept")
