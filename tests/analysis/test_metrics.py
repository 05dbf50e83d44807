import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import parabolt
from parabolt.analysis.curves import regret_curve, success_curve
from parabolt.analysis.leaderboard import leaderboard
from parabolt.analysis.metrics import (
    evaluations_to,
    inference_regret,
    oom_share,
    regret_area,
    simple_regret,
)

shared = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)


def test_a_hand_worked_run(run_of):
    run = run_of([None, 0.2, None, 0.4, 0.3, 0.5, None])
    assert simple_regret(run) == pytest.approx([0.5, 0.3, 0.3, 0.1, 0.1, 0.0, 0.0])
    assert evaluations_to(run) == 6
    assert evaluations_to(run, within=0.2) == 4
    assert oom_share(run) == pytest.approx(2 / 5)
    assert regret_area(run) == pytest.approx(100 * (0.3 + 0.1 + 0.1) / 5 / 0.5)


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
    assert curve.evaluation.tolist() == [1, 2, 3]
    assert curve.mean == pytest.approx([(50 + 50 + 100) / 3, (50 + 10 + 100) / 3, 110 / 3])
    assert curve.median == pytest.approx([50, 50, 10])
    assert curve.mean_log[2] == pytest.approx(np.mean(np.log([1e-8, 0.05, 0.5])))
    assert success_curve(runs) == pytest.approx([0, 0, 1 / 3])


def test_curves_of_recommendations_start_after_the_design(run_of):
    runs = [run_of([0.2, 0.2, 0.2], recommended=[math.nan, math.nan, 0.4])]
    curve = regret_curve(runs, is_inference=True)
    assert (curve.evaluation.tolist(), curve.mean) == ([3], pytest.approx([20.0]))


@given(order=st.permutations(range(6)))
@shared
def test_leaderboard_ranks_by_final_regret_whatever_the_order_of_runs(run_of, order):
    runs = [run_of([0.1, 0.2, 0.3], name="worse", seed=s) for s in range(3)]
    runs += [run_of([0.1, None, 0.5], name="better", seed=s) for s in range(3)]
    better, worse = leaderboard([runs[i] for i in order])
    assert (better.optimizer, worse.optimizer) == ("better", "worse")
    assert (better.n_found, better.n_runs, better.median_evaluations_to_optimum) == (3, 3, 3.0)
    assert worse.final_regret_percent == pytest.approx(40.0)
    assert worse.median_evaluations_to_optimum == math.inf
    assert better.step_time_s == pytest.approx(0.01)
    assert math.isnan(better.final_inference_regret_percent)


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
