"""Putting results together: what is alike is one group, and nothing else is."""

import dataclasses

import numpy as np
import pytest

import parabolt
from parabolt.analysis.metrics import evaluations_to, final_regret_percent, simple_regret
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.results import collect, have_same_evaluations, read_results
from parabolt.experiments.run import Run, execute
from parabolt.experiments.run_key import RunKey
from parabolt.experiments.store import FailedRun, RunStore

SHORT = Protocol(n_evaluations=4)


@pytest.fixture(scope="module")
def problem():
    return parabolt.load_problem("pco4-cpu")


@pytest.fixture(scope="module")
def run_of(problem):
    def make(label="random", seed=0, protocol=SHORT, **changes):
        key = RunKey.of(problem, label, seed, protocol, method="random")
        run = execute(problem, key)
        return dataclasses.replace(run, key=dataclasses.replace(key, **changes))

    return make


def groups(results):
    return {
        (board.label, group.label): [run.key.seed for run in group.runs]
        for board in results.boards
        for group in board.groups
    }


def test_the_same_run_counts_once(run_of):
    runs = [run_of(seed=seed) for seed in (1, 0)]
    results = collect([*runs, *runs, run_of(seed=1)])
    assert groups(results) == {("pco4-cpu", "random"): [0, 1]}
    assert (results.n_done, results.n_total, results.notices) == (2, 2, ())


def test_runs_with_one_key_and_other_evaluations_are_told(run_of):
    run = run_of()
    other = dataclasses.replace(run, observed=run.observed + 1.0)
    results = collect([run, other])
    assert results.boards[0].groups[0].runs == (run,)
    (notice,) = results.notices
    assert notice.startswith("pco4-cpu, random, seed 0: two runs with one key have different")


def test_the_last_digit_of_what_was_told_is_the_processors(run_of):
    run = run_of()
    rounded = dataclasses.replace(run, observed=np.nextafter(run.observed, np.inf))
    assert have_same_evaluations(run, rounded)
    assert collect([run, rounded]).notices == ()
    assert not have_same_evaluations(run, dataclasses.replace(run, observed=run.observed + 1e-9))
    assert not have_same_evaluations(run, run.cut(3))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"content_hash": "ab" * 32}, {"pco4-cpu [data abababab]": ["random"]}),
        ({"problem": "mine"}, {"mine": ["random"]}),
        ({"parabolt": "0.0.1"}, {"pco4-cpu": ["random [parabolt 0.0.1]"]}),
        ({"code": "c" * 64}, {"pco4-cpu": ["random [code cccccccc]"]}),
        ({"method": "tpe"}, {"pco4-cpu": ["random [tpe]"]}),
        ({"options": (("n_initial", 5),)}, {"pco4-cpu": ["random [random n_initial=5]"]}),
    ],
)
def test_runs_of_other_content_are_never_pooled(run_of, changes, expected):
    results = collect([run_of(seed=0), run_of(seed=0, **changes), run_of(seed=1, **changes)])
    found = groups(results)
    assert sorted(found.values()) == [[0], [0, 1]]
    ((label, (name,)),) = expected.items()
    assert found[label, name] == [0, 1]
    assert len({run.key.problem + run.key.optimizer for run in results.counted()}) == 2


def test_another_protocol_is_another_board(run_of):
    noisy = Protocol(n_evaluations=3, noise_std=0.05)
    results = collect([run_of(seed=0), run_of(seed=0, protocol=noisy)])
    assert [board.label for board in results.boards] == [
        "pco4-cpu [n_evaluations 4, noise_std 0.001]", "pco4-cpu [n_evaluations 3, noise_std 0.05]",
    ]  # fmt: skip
    assert [board.protocol for board in results.boards] == [SHORT, noisy]
    assert str(results.boards[1].protocol) == (
        "10 initial rows, then 3 evaluations, noise 0.05 iterations/s, repeats: allow, "
        "feedback: imputed"
    )


def test_failed_and_missing_runs_are_counted(run_of, problem):
    done = [run_of(seed=seed) for seed in (0, 2)]
    keys = [RunKey.of(problem, "random", seed, SHORT) for seed in range(6)]
    failed = [
        FailedRun(keys[1], "RuntimeError: singular", optimum=problem.optimum.value, n_gpus=4),
        FailedRun(keys[3], "RuntimeError: singular", optimum=problem.optimum.value),
        FailedRun(keys[4], "ended: it took too long"),
        FailedRun(keys[2], "of an earlier session"),  # it has finished since
    ]
    results = collect([*done, run_of("other", seed=0), run_of("other", seed=3)], failed, keys)
    (board,) = results.boards
    group, other = board.groups
    assert group.missing_seeds == (5,)
    assert (group.n_wanted, group.is_complete, other.is_complete) == (6, False, True)
    assert group.summary == (
        "2 of 6 runs; 2 failed: RuntimeError: singular; 1 failed: ended: it took too long; "
        "1 missing"
    )
    assert other.summary == "2 of 2 runs"
    assert (results.n_done, results.n_failed, results.n_total) == (4, 3, 8)
    assert board.n_gpus == 4
    assert board.common_seeds() == (0, 3)
    assert board.common_seeds("left-out") == (0,)
    assert board.has_unequal_seeds()
    assert board.has_unequal_seeds("left-out")
    assert [run.key.seed for run in board.counted("left-out")["random"]] == [0, 2]
    counted = {run.key.seed: run for run in board.counted()["random"]}
    assert sorted(counted) == [0, 1, 2, 3, 4]
    for seed in (1, 3, 4):  # each counts as a run that found nothing
        run = counted[seed]
        assert run.is_stand_in
        assert len(run) == 14
        assert run.optimum == problem.optimum.value
        assert final_regret_percent(run) == 100.0
        assert evaluations_to(run) is None
        assert (simple_regret(run) == problem.optimum.value).all()
    assert not counted[0].is_stand_in


def test_equal_seeds_need_no_remark(run_of):
    (board,) = collect([run_of(label, seed=s) for label in "ab" for s in (3, 7)]).boards
    assert board.common_seeds() == (3, 7)
    assert not board.has_unequal_seeds()


def test_stores_are_read_together(run_of, tmp_path):
    for name, labels in (("one", "ab"), ("two", "bc")):
        for label in labels:
            RunStore(tmp_path / name).save(run_of(label))
    results = read_results([tmp_path / "one", tmp_path / "two"])
    assert groups(results) == {("pco4-cpu", label): [0] for label in "abc"}
    only = [run.key for run in results.counted() if run.key.optimizer != "b"]
    found = groups(read_results([tmp_path / "two", tmp_path / "one"], only=only))
    assert list(found) == [("pco4-cpu", "a"), ("pco4-cpu", "c")]
    with pytest.raises(parabolt.TableError, match=r"expected runs in .*three, got nothing there"):
        read_results([tmp_path / "three"])


def test_a_cut_run_is_the_run_of_the_smaller_budget(problem):
    long, short = (execute(problem, RunKey.of(problem, "random", 2, Protocol(n))) for n in (7, 3))
    cut = long.cut(3)
    assert cut.key == short.key
    assert len(cut) == len(short) == 13
    assert list(cut.configurations) == list(short.configurations)
    assert np.array_equal(cut.observed, short.observed)
    assert np.array_equal(cut.recommended, short.recommended, equal_nan=True)
    assert np.array_equal(cut.end_s, short.end_s)
    assert cut.outcomes == short.outcomes


def test_gpu_hours_are_those_of_the_trials_that_have_ended(run_of):
    run = dataclasses.replace(
        run_of(), start_s=np.array([0.0, 0.0, 100.0]), end_s=np.array([100.0, 300.0, 340.0]),
        n_gpus=36,
    )  # fmt: skip
    assert isinstance(run, Run)
    assert run.gpu_hours.tolist() == pytest.approx([1.0, 4.0, 6.4])
    assert np.isnan(dataclasses.replace(run, n_gpus=0).gpu_hours).all()
