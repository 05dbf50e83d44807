import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import parabolt
from parabolt.analysis.metrics import (
    evaluations_to_optimum,
    inference_regret,
    oom_share,
    simple_regret,
)
from parabolt.analysis.statistics import _censored_median, leaderboard, mean_interval
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.run import Run, RunKey
from parabolt.outcome import Outcome, Outcomes
from parabolt.space.configuration import Configuration


def run_of(throughputs, *, optimum=0.5, n_initial=2, recommended=None, name="mine", seed=0):
    """A run with the given noiseless throughputs; None stands for out of memory."""
    outcomes = Outcomes.of([Outcome.oom() if t is None else Outcome.ok(t) for t in throughputs])
    n = len(throughputs)
    return Run(
        key=RunKey("pco32", name, seed, Protocol(n_evaluations=n - n_initial), "v", "0"),
        optimum=optimum,
        n_initial=n_initial,
        configurations=(Configuration(dp=32, bucket=64),) * n,
        observed=np.zeros(n),
        outcomes=outcomes,
        recommended=np.array(recommended if recommended is not None else [math.nan] * n),
        step_time_s=np.array([math.nan] * n_initial + [0.01] * (n - n_initial)),
    )


def test_a_hand_worked_run():
    run = run_of([None, 0.2, None, 0.4, 0.3, 0.5, None])
    assert simple_regret(run) == pytest.approx([0.5, 0.3, 0.3, 0.1, 0.1, 0.0, 0.0])
    assert evaluations_to_optimum(run) == 6
    assert oom_share(run) == pytest.approx(2 / 5)


def test_an_oom_is_no_progress_however_large_its_imputed_value():
    run = run_of([0.2, None, None])
    run.observed[:] = 9.0
    assert simple_regret(run) == pytest.approx([0.3, 0.3, 0.3])
    assert evaluations_to_optimum(run) is None


def test_inference_regret_counts_an_infeasible_recommendation_in_full():
    run = run_of([0.2, 0.3, 0.3, 0.3], recommended=[math.nan, math.nan, 0.0, 0.45])
    assert inference_regret(run)[2:] == pytest.approx([0.5, 0.05])
    assert np.isnan(inference_regret(run)[:2]).all()


@given(st.lists(st.one_of(st.none(), st.floats(0.01, 0.5)), min_size=3, max_size=30))
def test_regret_never_rises_and_stays_within_the_optimum(throughputs):
    regret = simple_regret(run_of(throughputs))
    assert (np.diff(regret) <= 0).all()
    assert (regret >= 0).all()
    assert (regret <= 0.5).all()


@pytest.mark.parametrize(
    ("found", "median"),
    [([3], 3), ([3, 5], 4), ([3, None], math.inf), ([1, 7, None], 7), ([None, None], math.inf),
     ([9, 1, 5, None, None], 9)],
)  # fmt: skip
def test_median_with_censored_counts(found, median):
    assert _censored_median(found) == median


def test_mean_interval_is_the_percentile_bootstrap():
    values = np.random.default_rng(0).exponential(size=40)
    low, high = mean_interval(values)
    rng = np.random.default_rng(1)
    means = rng.choice(values, (20_000, 40)).mean(axis=1)
    assert (low, high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), rel=0.02)
    assert mean_interval(np.array([2.0])) == (2.0, 2.0)
    assert mean_interval(np.full(5, 0.25)) == (0.25, 0.25)


@given(st.permutations(range(6)))
@settings(max_examples=20)
def test_leaderboard_ranks_by_final_regret_whatever_the_order_of_runs(order):
    runs = [run_of([0.1, 0.2, 0.3], name="worse", seed=s) for s in range(3)]
    runs += [run_of([0.1, None, 0.5], name="better", seed=s) for s in range(3)]
    better, worse = leaderboard([runs[i] for i in order])
    assert (better.optimizer, worse.optimizer) == ("better", "worse")
    assert (better.n_found, better.n_runs, better.median_evaluations_to_optimum) == (3, 3, 3.0)
    assert worse.final_regret_percent == pytest.approx(40.0)
    assert worse.median_evaluations_to_optimum == math.inf
    assert better.step_time_s == pytest.approx(0.01)


def test_success_of_published_random_runs():
    """From the published logs: the optimum was evaluated in 2 of 10 runs on either table."""
    import csv
    from pathlib import Path

    best = {"pco32": "5 0 0 0 0 8 2 0", "pco64": "4 2 0 0 2 6 2 0"}
    path = Path(__file__).parents[1] / "data" / "published_random.csv"
    with path.open() as file:
        found = {(r["problem"], r["seed"]) for r in csv.DictReader(file)
                 if r["levels"] == best[r["problem"]]}  # fmt: skip
    for name in best:
        from parabolt.experiments.run import execute

        problem = parabolt.load_problem(name)
        runs = [
            execute(problem, RunKey.of(problem, "random", seed, Protocol.published(name)))
            for seed in range(10)
        ]
        assert leaderboard(runs)[0].n_found == sum(problem == name for problem, _ in found)
