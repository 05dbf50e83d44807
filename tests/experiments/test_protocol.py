"""Protocols: hand-worked designs, feedback and schedules on the simulated clock."""

import dataclasses
import math

import numpy as np
import pyarrow as pa
import pytest

import parabolt
from parabolt.errors import OptionError
from parabolt.experiments import run as run_module
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.run import execute, told_problem, trial_time_s
from parabolt.experiments.run_key import RunKey
from parabolt.outcome import OOM_MARGIN, Outcome, Status
from parabolt.tables.table import Table


@pytest.fixture(scope="module")
def five():
    """Five candidates of pco32: 2, 1 and 0.5 iterations/s, one out of memory, 4 iterations/s."""
    table = parabolt.load_table("pco32")
    ok = np.flatnonzero(table.is_feasible)[:4]
    oom = np.flatnonzero(~table.is_feasible)[:1]
    data = table.data.take(pa.array([*ok[:3], *oom, ok[3]]))
    index = data.schema.get_field_index("throughput_mean")
    figures = pa.array([2.0, 1.0, 0.5, math.nan, 4.0])
    data = data.set_column(index, "throughput_mean", figures)
    return parabolt.TabularProblem(Table(data, table.instance))


class InOrder(parabolt.Optimizer):
    """Proposes rows in their order, and notes what it knew then."""

    def __init__(self, space, *, knew=None, **options):
        super().__init__(space, **options)
        self.knew = knew

    def _next_row(self, available):
        if self.knew is not None:
            self.knew.append((self.history.rows.tolist(), list(self.pending_rows)))
        return int(available[0])


def run_in_order(problem, knew=None, **changes):
    protocol = Protocol(
        n_evaluations=5, n_initial=0, min_feasible=0, noise_std=0.0, repeats="avoid",
        trial_startup_s=10.0, trial_steps=20, **changes,
    )  # fmt: skip
    key = RunKey.of(problem, "in-order", 0, protocol, code="")

    class Noting(InOrder):
        def __init__(self, space, **options):
            super().__init__(space, knew=knew, **options)

    run = execute(problem, key, Noting)
    return run, problem.space.rows(run.configurations).tolist()


def test_one_worker_does_one_trial_after_the_other(five):
    run, rows = run_in_order(five)
    assert rows == [0, 1, 2, 3, 4]
    assert run.start_s.tolist() == [0.0, 20.0, 50.0, 100.0, 110.0]
    assert run.end_s.tolist() == [20.0, 50.0, 100.0, 110.0, 125.0]
    assert run.gpu_hours.tolist() == pytest.approx(
        [t * 32 / 3600 for t in (20.0, 50.0, 100.0, 110.0, 125.0)]
    )


def test_asynchronous_workers_are_given_a_trial_whenever_they_are_free(five):
    knew = []
    run, rows = run_in_order(five, knew, workers=2)
    assert rows == [0, 1, 3, 4, 2]  # in the order in which they end and are told
    assert run.start_s.tolist() == [0.0, 0.0, 30.0, 40.0, 20.0]
    assert run.end_s.tolist() == [20.0, 30.0, 40.0, 55.0, 70.0]
    assert knew == [([], []), ([], [0]), ([0], [1]), ([0, 1], [2]), ([0, 1, 3], [2])]
    assert run.gpu_hours.tolist() == pytest.approx(
        [t * 32 / 3600 for t in (20.0, 50.0, 60.0, 75.0, 125.0)]
    )


def test_a_batch_waits_for_its_slowest_trial(five):
    knew = []
    run, rows = run_in_order(five, knew, workers=2, schedule="batch")
    assert rows == [0, 1, 3, 2, 4]
    assert run.start_s.tolist() == [0.0, 0.0, 30.0, 30.0, 80.0]
    assert run.end_s.tolist() == [20.0, 30.0, 40.0, 80.0, 95.0]
    assert knew == [([], []), ([], [0]), ([0, 1], []), ([0, 1], [2]), ([0, 1, 3, 2], [])]


def test_more_workers_than_candidates_end_with_the_last_trial(five):
    for schedule in ("asynchronous", "batch"):
        run, rows = run_in_order(five, workers=9, schedule=schedule)
        assert rows == [3, 4, 0, 1, 2]
        assert run.end_s.tolist() == [10.0, 15.0, 20.0, 30.0, 50.0]


def test_the_design_is_told_before_the_search_begins(five):
    protocol = Protocol(
        n_evaluations=2, n_initial=3, min_feasible=0, repeats="avoid", workers=3,
        trial_startup_s=10.0,
    )  # fmt: skip
    knew = []

    class Noting(InOrder):
        def __init__(self, space, **options):
            super().__init__(space, knew=knew, **options)

    run = execute(five, RunKey.of(five, "noting", 1, protocol, code=""), Noting)
    assert run.n_initial == 3
    assert run.start_s[:3].tolist() == [0.0] * 3
    assert run.start_s[3:].tolist() == [run.end_s[2]] * 2
    assert [len(told) for told, _ in knew] == [3, 3]


def test_a_trial_takes_as_long_as_the_table_says():
    protocol = Protocol(1, trial_startup_s=7.0, trial_steps=30)
    measured = dataclasses.replace(Outcome.ok(0.5), wall_time_s=123.0)
    assert trial_time_s(measured, protocol) == 123.0
    assert trial_time_s(Outcome.ok(0.5), protocol) == 67.0
    assert trial_time_s(Outcome.oom(), protocol) == 7.0


def test_what_each_protocol_tells_of_a_trial_that_ran_out_of_memory(five):
    dead, alive = five.space.candidates[3], five.space.candidates[0]
    distance = ((five.space.encoded - five.space.encoded[3]) ** 2).sum(axis=1)
    nearest = [row for row in (0, 1, 2, 4) if distance[row] == min(distance[[0, 1, 2, 4]])]
    figures = {0: 2.0, 1: 1.0, 2: 0.5, 4: 4.0}
    imputed = sum(figures[row] for row in nearest) / len(nearest)
    for feedback, throughput, margin in (
        ("imputed", imputed, OOM_MARGIN), ("margin", math.nan, OOM_MARGIN),
        ("status", math.nan, math.nan),
    ):  # fmt: skip
        told = told_problem(five, Protocol(1, noise_std=0.0, feedback=feedback), seed=0)
        outcome = told.evaluate(dead)
        assert outcome.status is Status.OOM
        assert np.array_equal(
            [outcome.throughput, outcome.memory_margin], [throughput, margin], equal_nan=True
        )
        assert told.evaluate(alive) == five.evaluate(alive)


#: One of each kind; all others are slow tests.
KINDS = ("parabolt", "random", "logeic", "scbo", "tpe")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in KINDS else pytest.mark.slow)
        for name in parabolt.optimizer_names()
    ],
)
@pytest.mark.parametrize(
    "change",
    [
        {"feedback": "status"},
        {"feedback": "margin"},
        {"workers": 3},
        {"workers": 3, "schedule": "batch"},
    ],
    ids=["status", "margin", "asynchronous", "batch"],
)
def test_every_optimizer_runs_under_every_protocol(name, change):
    problem = parabolt.load_problem("pco4-cpu")
    run = execute(problem, RunKey.of(problem, name, 1, Protocol(3, repeats="avoid", **change)))
    assert len(set(run.configurations)) == 13
    assert (np.diff(run.end_s) >= 0.0).all()
    assert np.isfinite(run.observed).all() == ("feedback" not in change)


def test_imputed_figures_that_tell_a_single_candidates_throughput():
    """What docs/studies.md states of the published protocol."""
    counts = {}
    for name in ("pco32", "pco64"):
        problem = parabolt.load_problem(name)
        encoded, ok = problem.space.encoded, problem.table.is_feasible
        squares = ((encoded[~ok][:, None] - encoded[ok][None]) ** 2).sum(axis=2)
        n_nearest = (squares <= squares.min(axis=1, keepdims=True) + 1e-9).sum(axis=1)
        counts[name] = (int((n_nearest == 1).sum()), len(n_nearest))
    assert counts == {"pco32": (12, 40), "pco64": (104, 220)}


def test_the_design_grows_from_the_end_of_the_shuffled_rest():
    is_feasible = np.zeros(30, dtype=bool)
    is_feasible[[4, 17, 29]] = True
    rng = np.random.default_rng(5)
    first = rng.choice(30, size=10, replace=False).tolist()
    rest = [row for row in range(30) if row not in first]
    rng.shuffle(rest)
    wanted, n_ok = list(first), int(is_feasible[first].sum())
    for row in reversed(rest):
        if n_ok == 3:
            break
        wanted.append(row)
        n_ok += int(is_feasible[row])
    found = Protocol(1, min_feasible=3).initial_rows(is_feasible, np.random.default_rng(5))
    assert found.tolist() == wanted
    assert len(wanted) > 10


def test_step_time_is_that_of_the_optimizer_alone(five, monkeypatch):
    """Asking takes 1 s, telling 0.25 s, recommending 0.125 s; a look-up takes 100 s."""
    now = [0.0]
    monkeypatch.setattr(run_module.time, "perf_counter", lambda: now[0])

    def takes(seconds, method):
        def slow(self, *arguments):
            now[0] += seconds
            return method(self, *arguments)

        return slow

    problem = parabolt.TabularProblem(five.table)
    monkeypatch.setattr(type(problem), "_evaluate_row", takes(100.0, type(problem)._evaluate_row))
    monkeypatch.setattr(type(problem), "_evaluate_rows", takes(100.0, type(problem)._evaluate_rows))

    class Slow(InOrder):
        _next_row = takes(1.0, InOrder._next_row)
        tell = takes(0.25, InOrder.tell)
        recommend = takes(0.125, InOrder.recommend)

    protocol = Protocol(3, n_initial=2, min_feasible=0, repeats="avoid")
    run = execute(problem, RunKey.of(problem, "slow", 0, protocol, code=""), Slow)
    assert np.isnan(run.step_time_s[:2]).all()
    assert run.step_time_s[2:].tolist() == [1.375] * 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_evaluations": -1}, "n_evaluations: expected a whole number >= 0, got -1"),
        ({"n_evaluations": True}, "n_evaluations: expected a whole number >= 0, got True"),
        ({"n_initial": 1.0}, "n_initial: expected a whole number >= 0, got 1.0"),
        ({"workers": 0}, "workers: expected a whole number >= 1, got 0"),
        ({"noise_std": -1.0}, "noise_std: expected a number >= 0, got -1.0"),
        ({"noise_std": math.nan}, "noise_std: expected a number >= 0, got nan"),
        ({"noise_std": math.inf}, "noise_std: expected a number >= 0, got inf"),
        ({"noise_std": "x"}, "noise_std: expected a number >= 0, got 'x'"),
        ({"repeats": "never"}, "repeats: expected one of avoid, allow, got 'never'"),
        ({"feedback": None}, "feedback: expected one of imputed, status, margin, got None"),
        ({"schedule": "x"}, "schedule: expected one of asynchronous, batch, got 'x'"),
        ({"run_time_limit_s": 0}, "run_time_limit_s: expected a number > 0, got 0"),
        ({"run_memory_limit_gib": "4"}, "run_memory_limit_gib: expected a number > 0, got '4'"),
    ],
)
def test_protocols_that_cannot_be(change, message):
    with pytest.raises(OptionError, match=f"^{message}$"):
        Protocol(**{"n_evaluations": 1, **change})


def test_a_whole_number_of_noise_is_the_same_protocol():
    assert Protocol(1, noise_std=0) == Protocol(1, noise_std=0.0)
    assert Protocol(1, noise_std=0).identity() == Protocol(1, noise_std=0.0).identity()
    assert isinstance(Protocol(1, noise_std=0).noise_std, float)


def test_limits_are_no_part_of_a_protocols_identity():
    limited = Protocol(1, run_time_limit_s=3, run_memory_limit_gib=2.5)
    assert limited == Protocol(1)
    assert limited.identity() == {
        "n_evaluations": 1, "n_initial": 10, "min_feasible": 2, "noise_std": 0.001,
        "repeats": "allow",
    }  # fmt: skip
