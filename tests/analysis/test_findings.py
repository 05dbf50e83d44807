"""Which runs are compared, and what is said of those that are not."""

import math
from dataclasses import replace

import pytest

import parabolt
from parabolt.analysis.findings import find
from parabolt.experiments.results import collect
from parabolt.experiments.store import FailedRun


@pytest.fixture
def failed_like():
    """Makes the failed run of an optimizer and a seed, alike a run in everything else."""

    def make(run, *, name, seed, reason="RuntimeError: singular", optimum=0.5):
        key = replace(run.key, optimizer=name, method=name, seed=seed)
        return FailedRun(key, reason, n_attempts=1, optimum=optimum, n_gpus=32)

    return make


def test_failed_runs_are_in_every_part(made_runs, failed_like):
    runs = made_runs({"a": [1, 2, 3], "b": [0]})
    failed = [failed_like(runs[0], name="b", seed=seed) for seed in (1, 2)]
    findings = find(collect(runs, failed))
    (found,) = findings.boards
    assert found.notes == ("b: 1 of 3 runs; 2 failed: RuntimeError: singular",)
    assert found.seeds == (0, 1, 2)
    assert {s.optimizer: (s.n_runs, s.n_failed, s.n_found) for s in found.scores} == {
        "a": (3, 0, 0),
        "b": (3, 2, 1),
    }
    assert [s.optimizer for s in found.scores] == ["a", "b"]
    assert found.curves["evaluations"]["b"].regret.mean[-1] == pytest.approx(200 / 3)
    assert findings.ranking.mean_ranks == {"a": pytest.approx(4 / 3), "b": pytest.approx(5 / 3)}
    assert findings.profile.share["b"][-1] == pytest.approx(1 / 3)
    (comparison,) = findings.comparisons
    assert (comparison.n_better, comparison.n_worse) == (2, 1)


def test_failed_runs_may_be_left_out_and_that_is_said(made_runs, failed_like):
    runs = made_runs({"a": [1, 2, 3], "b": [0]})
    failed = [failed_like(runs[0], name="b", seed=seed) for seed in (1, 2)]
    (found,) = find(collect(runs, failed), failed="left-out").boards
    assert found.seeds == (0,)
    assert [(s.optimizer, s.n_runs, s.n_failed) for s in found.scores] == [
        ("b", 1, 0),
        ("a", 1, 0),
    ]
    assert found.notes[1:] == (
        "failed runs are left out, as was asked for",
        "the seeds are unequal: the 1 seed that all have are compared, and further runs are left "
        "out (2 of a)",
    )


def test_unequal_seeds_are_said_and_the_common_ones_compared(made_runs):
    runs = made_runs({"a": [1, 2, 30, 40], "b": [5, 6]})
    (found,) = find(collect(runs)).boards
    assert found.seeds == (0, 1)
    assert found.scores[0].final_regret_percent == pytest.approx(1.5)
    assert found.notes == (
        "the seeds are unequal: the 2 seeds that all have are compared, and further runs are left "
        "out (2 of a)",
    )


def test_runs_that_are_missing_are_said(made_runs):
    runs = made_runs({"a": [1, 2], "b": [5, 6]})
    wanted = [replace(run.key, seed=run.key.seed + 10) for run in runs]
    wanted += [replace(run.key, optimizer="c", method="c") for run in runs[:2]]
    (found,) = find(collect(runs, wanted=wanted)).boards
    assert set(found.notes) == {
        "a: 2 of 4 runs; 2 missing",
        "b: 2 of 4 runs; 2 missing",
        "c: 0 of 2 runs; 2 missing",
    }
    assert list(found.runs) == ["a", "b"]


def test_a_board_that_cannot_be_compared_is_a_note(made_runs, failed_like):
    runs = made_runs({"a": [1], "b": [2]}, problem="one")
    runs += made_runs({"a": [1]}, problem="two") + made_runs(
        {"b": [1]}, problem="two", first_seed=1
    )
    other = replace(runs[0].key, problem="three")
    failed = [replace(failed_like(runs[0], name="a", seed=0), key=other, optimum=math.nan)]
    findings = find(collect(runs, failed))
    assert [found.board.label for found in findings.boards] == ["one"]
    assert findings.notes == (
        "two: the optimizers have no seed in common",
        "three: no run has finished",
        "a: 0 of 1 runs; 1 failed: RuntimeError: singular",
    )


def test_nothing_to_compare_is_an_error(made_runs):
    runs = made_runs({"a": [1]}) + made_runs({"b": [1]}, first_seed=1)
    with pytest.raises(parabolt.OptionError, match="got none: pco32: the optimizers have no seed"):
        find(collect(runs))


def test_other_protocols_stand_apart(made_runs, run_of):
    runs = made_runs({"a": [1, 2]}) + [run_of([0.1] * 6, name="a", seed=seed) for seed in (0, 1)]
    findings = find(collect(runs))
    assert [len(found.scores) for found in findings.boards] == [1, 1]
    assert len({found.board.label for found in findings.boards}) == 2
    assert {score.n_runs for score in findings.scores} == {2}


def test_order_is_that_of_the_ranks(made_runs):
    findings = find(collect(made_runs({"a": [9, 9], "b": [1, 1], "c": [5, 5]})), against="c")
    assert findings.optimizers == ("b", "c", "a")
    assert list(findings.boards[0].runs) == ["b", "c", "a"]
    assert [(c.first, c.second) for c in findings.comparisons] == [("c", "a"), ("c", "b")]
    assert findings.overall == []


def test_landscapes_are_of_the_very_data(pco32, made_runs):
    runs = made_runs({"a": [1]})
    known = replace(runs[0].key, content_hash=pco32.content_hash)
    assert find(collect(runs)).boards[0].landscape is None
    # Configurations of the fixture are one candidate of pco32, again and again.
    (found,) = find(collect([replace(runs[0], key=known)])).boards
    assert len(found.landscape) == 379
    assert found.tradeoff is not None
