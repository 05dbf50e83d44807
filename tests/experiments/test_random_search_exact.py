"""Random search on the whole suite against its exact expectation, by combinatorics."""

from fractions import Fraction
from math import comb, sqrt

import numpy as np
import pytest

import parabolt
from parabolt.analysis.suite_scores import problem_scores, suite_scores
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.run import execute
from parabolt.experiments.run_key import RunKey

N_TRIALS, N_SEEDS = 20, 40
PROTOCOL = Protocol(
    n_evaluations=N_TRIALS, n_initial=0, min_feasible=0, noise_std=0.0, repeats="avoid"
)


def best_of(values, n):
    """Mean and variance of the largest of n draws without replacement.

    The k-th smallest of N is the largest of n draws in C(k - 1, n - 1) of C(N, n) ways.
    """
    ways = [comb(k - 1, n - 1) for k in range(1, len(values) + 1)]
    shares = [float(Fraction(w, comb(len(values), n))) for w in ways]
    ordered = np.sort(values)
    mean = float(np.dot(shares, ordered))
    return mean, float(np.dot(shares, (ordered - mean) ** 2))


def test_best_of_by_hand():
    # Of 1, 2, 4 two are drawn: 2 is the best of one pair, 4 of two.
    assert best_of(np.array([4.0, 1.0, 2.0]), 2) == pytest.approx((10 / 3, 8 / 9))
    assert best_of(np.array([4.0, 1.0]), 2) == (4.0, 0.0)


@pytest.mark.slow
def test_random_search_on_the_suite_is_what_combinatorics_say():
    problems = parabolt.load_suite("uscale").problems
    keys = [
        (p, RunKey.of(p, "random", seed, PROTOCOL)) for p in problems for seed in range(N_SEEDS)
    ]
    scores = problem_scores(
        [execute(p, key) for p, key in keys], {p.name: len(p.space) for p in problems}
    )
    expected, deviations = [], []
    for problem in problems:
        table = problem.table
        values = np.where(table.is_feasible, table.outcomes.throughput, 0.0) / problem.optimum.value
        mean, variance = best_of(values, N_TRIALS)
        expected.append(100.0 * (1.0 - mean))
        deviations.append(100.0 * sqrt(variance / N_SEEDS))
    z = (np.array([s.regret_percent for s in scores]) - expected) / np.array(deviations)
    assert np.abs(z).max() < 4.5  # one in 8,000 by chance
    assert (z**2).sum() < 55.0  # 19 on average; one in 40,000
    (suite,) = suite_scores(scores)
    error = sqrt(sum(d**2 for d in deviations)) / len(problems)
    assert suite.regret_percent == pytest.approx(np.mean(expected), abs=4.0 * error)
