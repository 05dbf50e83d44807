import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import parabolt
from parabolt.analysis.curves import has_clock, regret_curve
from parabolt.analysis.leaderboard import COLUMNS, leaderboard, score_cells
from parabolt.analysis.metrics import (
    evaluations_to,
    inference_regret,
    oom_share,
    regret_area,
    simple_regret,
)
from parabolt.experiments.run import Run
from parabolt.outcome import Outcome, Status

#: Ended for memory or a crash, it is not known for which.
FAILURE = Outcome(Status.FAILED)

shared = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)


def test_a_hand_worked_run(run_of):
    run = run_of([None, 0.2, None, 0.4, 0.3, 0.5, None])
    assert simple_regret(run) == pytest.approx([0.5, 0.3, 0.3, 0.1, 0.1, 0.0, 0.0])
    assert evaluations_to(run) == 6
    assert evaluations_to(run, within=0.2) == 4
    assert oom_share(run) == pytest.approx(2 / 5)
    assert regret_area(run) == pytest.approx(100 * (0.3 + 0.1 + 0.1) / 5 / 0.5)


@pytest.mark.parametrize(
    ("endings", "oom", "failed", "cell"),
    [
        ([0.1, 0.2, None, None], 0.5, 0.0, "50.0"),
        ([FAILURE, 0.2, FAILURE, 0.1], 0.0, 0.5, "failed 50.0"),
        ([FAILURE, None, 0.2, 0.1], 0.25, 0.25, "25.0, failed 25.0"),
        ([0.1, 0.2, 0.1, 0.1], 0.0, 0.0, "0.0"),
    ],
)
def test_what_failed_is_not_counted_as_out_of_memory(run_of, endings, oom, failed, cell):
    (score,) = leaderboard([run_of([0.1, 0.1, *endings])])
    assert (score.oom_share, score.failed_share) == (oom, failed)
    assert score_cells(score)[list(COLUMNS).index("OOM, %")] == cell


def test_an_oom_is_no_progress_however_large_its_imputed_value(run_of):
    run = run_of([0.2, None, None])
    run.observed[:] = 9.0
    assert simple_regret(run) == pytest.approx([0.3, 0.3, 0.3])
    assert evaluations_to(run) is None


def test_inference_regret_counts_an_infeasible_recommendation_in_full(run_of):
    run = run_of([0.2, 0.3, 0.3, 0.3], recommended=[math.nan, math.nan, 0.0, 0.45])
    assert inference_regret(run)[2:] == pytest.approx([0.5, 0.05])
    assert np.isnan(inference_regret(run)[:2]).all()


@given(throughputs=st.lists(st.one_of(st.none(), st.floats(0.01, 0.5)), min_size=3, max_size=30))
@shared
def test_regret_never_rises_and_stays_within_the_optimum(run_of, throughputs):
    regret = simple_regret(run_of(throughputs))
    assert (np.diff(regret) <= 0).all()
    assert (regret >= 0).all()
    assert (regret <= 0.5).all()


def test_curves_by_hand(run_of):
    runs = [run_of([0.25, 0.25, 0.5]), run_of([0.25, 0.45]), run_of([None, None, None])]
    curve = regret_curve(runs)
    assert curve.at.tolist() == [1, 2, 3]
    assert curve.regret.mean == pytest.approx([200 / 3, (50 + 10 + 100) / 3, 110 / 3])
    assert curve.regret.median == pytest.approx([50, 50, 10])
    assert curve.regret.lower == pytest.approx([50, 30, 5])
    assert curve.regret.upper == pytest.approx([75, 75, 55])
    assert curve.mean_log_regret[2] == pytest.approx(np.mean(np.log([1e-8, 0.05, 0.5])))
    assert curve.found == pytest.approx([0, 0, 1 / 3])


def test_curves_of_recommendations_start_after_the_design(run_of):
    runs = [run_of([0.2, 0.2, 0.2], recommended=[math.nan, math.nan, 0.4])]
    curve = regret_curve(runs, is_inference=True)
    assert (curve.at.tolist(), curve.regret.mean) == ([3], pytest.approx([20.0]))


def test_curves_over_hours_hold_until_the_next_trial_has_ended(run_of):
    """One run's trials end after 1, 2 and 3 minutes, the other's after 2, 4 and 6."""
    slow = run_of([0.25, 0.5, 0.1])
    slow = replace(slow, start_s=slow.start_s * 2.0, end_s=slow.end_s * 2.0)
    curve = regret_curve([run_of([0.4, 0.45, 0.5]), slow], "hours")
    assert curve.at * 60.0 == pytest.approx([1, 2, 3, 4, 6])
    # 20, 10, 0, 0, 0 % beside 100 (nothing has ended yet), 50, 50, 0, 0 %.
    assert curve.regret.mean == pytest.approx([60, 30, 25, 0, 0])
    assert curve.found == pytest.approx([0, 0, 0.5, 1, 1])
    gpus = regret_curve([run_of([0.4, 0.45, 0.5]), slow], "GPU-hours")
    assert gpus.at == pytest.approx(32 * curve.at)
    assert gpus.regret.mean == pytest.approx(curve.regret.mean)


def test_of_very_many_times_a_curve_holds_some_and_the_last(run_of):
    runs = []
    for seed in range(30):
        run = run_of([0.1 + 0.01 * t for t in range(41)], seed=seed)
        runs.append(replace(run, end_s=run.end_s + seed))
    curve = regret_curve(runs, "hours")
    assert len(curve.at) == 1000
    assert curve.at[-1] * 3600 == pytest.approx(41 * 60 + 29)
    whole = np.unique(np.concatenate([run.end_s for run in runs]))
    assert len(whole) == 30 * 41
    for number in (0, 500, 999):  # each point is exact
        ended = [(run.end_s <= curve.at[number] * 3600 + 1e-9).sum() for run in runs]
        best = [0.5 if n == 0 else 0.5 - (0.1 + 0.01 * (n - 1)) for n in ended]
        assert curve.regret.mean[number] == pytest.approx(np.mean(np.maximum(best, 0)) * 200)


def test_a_failed_run_has_found_nothing_at_any_time(run_of):
    run = run_of([0.25, 0.5])
    failed = Run.without_finds(run.key, 0.5, 32)
    for axis in ("evaluations", "hours"):
        curve = regret_curve([run, failed], axis)
        assert curve.regret.mean == pytest.approx([75, 50])
        assert has_clock([run, failed], axis)
    assert not has_clock([failed], "hours")
    assert not has_clock([replace(run, n_gpus=0)], "GPU-hours")


@given(order=st.permutations(range(6)))
@shared
def test_leaderboard_ranks_by_final_regret_whatever_the_order_of_runs(run_of, order):
    runs = [run_of([0.1, 0.2, 0.3], name="worse", seed=s) for s in range(3)]
    runs += [run_of([0.1, None, 0.5], name="better", seed=s) for s in range(3)]
    better, worse = leaderboard([runs[i] for i in order])
    assert (better.optimizer, worse.optimizer) == ("better", "worse")
    assert (better.n_found, better.n_runs, better.median_evaluations_to_optimum) == (3, 3, 3.0)
    assert (better.found_low, better.found_high) == (pytest.approx(0.4385, abs=1e-4), 1.0)
    assert math.isnan(better.final_regret_low_percent)  # three runs that end alike
    assert worse.final_regret_percent == pytest.approx(40.0)
    assert worse.median_evaluations_to_optimum == math.inf
    assert better.step_time_s == pytest.approx(0.01)
    assert math.isnan(better.final_inference_regret_percent)


def test_a_failed_run_counts_as_one_that_found_nothing(run_of):
    run = run_of([0.1, 0.2, None, 0.5], recommended=[math.nan, math.nan, 0.4, 0.5])
    (score,) = leaderboard([run, Run.without_finds(run.key, 0.5)])
    assert (score.n_runs, score.n_failed, score.n_found) == (2, 1, 1)
    assert score.final_regret_percent == pytest.approx(50.0)
    assert score.final_inference_regret_percent == pytest.approx(50.0)
    assert score.oom_share == pytest.approx(0.5)  # of the run that there is
    assert score.step_time_s == pytest.approx(0.01)
    assert score_cells(score)[1] == "1/2 [9, 91] %, 1 failed"
    (alone,) = leaderboard([Run.without_finds(run.key, 0.5)])
    assert score_cells(alone)[1:] == ["0/1 [0, 79] %, 1 failed", "> 4", "100.00", "-", "-"]


def test_success_of_published_random_runs():
    """From the published logs: the optimum was evaluated in 2 of 10 runs on either table."""
    import csv
    from pathlib import Path

    from parabolt.experiments.protocol import Protocol
    from parabolt.experiments.run import RunKey, execute

    best = {"pco32": "5 0 0 0 0 8 2 0", "pco64": "4 2 0 0 2 6 2 0"}
    path = Path(__file__).parents[1] / "data" / "published_random.csv"
    with path.open() as file:
        found = {(r["problem"], r["seed"]) for r in csv.DictReader(file)
                 if r["levels"] == best[r["problem"]]}  # fmt: skip
    for name in best:
        problem = parabolt.load_problem(name)
        runs = [
            execute(problem, RunKey.of(problem, "random", seed, Protocol.published(name)))
            for seed in range(10)
        ]
        assert leaderboard(runs)[0].n_found == sum(problem == name for problem, _ in found) == 2
