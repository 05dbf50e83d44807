"""SCBO's region, by hand."""

import numpy as np
import pytest

import parabolt
from parabolt.optimizers.published.trust_region import (
    TrustRegion,
    incumbent,
    nearest_rows,
    violations,
)
from parabolt.outcome import Outcome


def after(region, *values):
    for value in values:
        region = region.after(value, 0.0, is_feasible=True)
    return region


def test_three_successes_double_and_ten_failures_halve():
    region = TrustRegion.around(800, (0.2, 0.0, True))
    assert region.size == 400
    region = after(region, 0.21, 0.22)
    assert (region.size, region.n_successes) == (400, 2)
    region = after(region, 0.23)
    assert (region.size, region.n_successes, region.best_throughput) == (800, 0, 0.23)
    region = after(region, 0.24, 0.25, 0.26)
    assert region.size == 800  # never more than there are
    region = after(region, *[0.1] * 9)
    assert (region.size, region.n_failures) == (800, 9)
    region = after(region, 0.1)
    assert (region.size, region.n_failures) == (400, 0)


def test_a_failure_breaks_a_row_of_successes_and_the_other_way_round():
    region = after(TrustRegion.around(100, (0.2, 0.0, True)), 0.3, 0.4, 0.1)
    assert (region.n_successes, region.n_failures) == (0, 1)
    assert after(region, 0.5).n_failures == 0


def test_a_gain_has_to_exceed_a_thousandth():
    region = TrustRegion.around(100, (0.2, 0.0, True))
    assert after(region, 0.2002).n_failures == 1
    assert after(region, 0.2003).n_successes == 1


def test_restarts_at_ten_candidates():
    region = TrustRegion.around(80, (0.5, 0.0, True))
    assert (region.size, region.min_size) == (40, 10)
    region = after(region, *[0.1] * 10)
    assert region.size == 20
    assert after(region, *[0.1] * 10).size == 40


@pytest.mark.parametrize(("n", "size", "least"), [(1, 1, 1), (3, 1, 1), (12, 6, 3), (780, 390, 10)])
def test_small_sets_restart_below_their_first_size(n, size, least):
    region = TrustRegion.around(n, (0.0, 0.0, True))
    assert (region.size, region.min_size) == (size, least)


def test_infeasible_runs_succeed_only_while_nothing_fits():
    region = TrustRegion.around(100, (-np.inf, 0.2, False))
    worse = region.after(0.9, 0.2, is_feasible=False)
    assert worse.n_failures == 1
    nearer = region.after(0.1, 0.05, is_feasible=False)
    assert (nearer.n_successes, nearer.best_violation) == (1, 0.05)
    first = nearer.after(0.01, 0.0, is_feasible=True)
    assert (first.n_successes, first.is_feasible, first.best_throughput) == (2, True, 0.01)
    assert first.after(0.9, 0.001, is_feasible=False).n_failures == 1


def test_nearest_rows_stretch_along_long_lengthscales():
    X = np.array([[0.0, 0.0], [0.3, 0.0], [0.0, 0.2], [1.0, 0.0], [0.0, 1.0]])
    rows = np.arange(5)
    assert nearest_rows(X, X[0], np.ones(2), rows, 3).tolist() == [0, 1, 2]
    # Geometric mean 1: differences count 1/4 along the first input and 4 times along the second.
    assert nearest_rows(X, X[0], np.array([4.0, 0.25]), rows, 3).tolist() == [0, 1, 3]
    assert nearest_rows(X, X[0], np.ones(2), rows[2:], 1).tolist() == [2]
    assert nearest_rows(X, X[0], np.ones(2), rows, 99).tolist() == [0, 1, 2, 3, 4]


def test_incumbent():
    throughput = np.array([0.5, 0.2, np.nan, 0.3])
    margin = np.array([0.2, -0.1, 0.1, -0.2])
    assert incumbent(throughput, margin, np.array([False, True, False, True])) == 3
    none = np.zeros(4, dtype=bool)
    assert violations(margin, none).tolist() == [0.2, 0.0, 0.1, 0.0]
    assert incumbent(throughput, np.array([0.2, 0.1, 0.1, 0.2]), none) == 1


def test_an_optimizer_follows_the_observations_it_is_told():
    problem = parabolt.load_problem("pco64")
    optimizer = parabolt.make_optimizer("scbo", problem.space, seed=0)
    candidates = problem.space.candidates
    for i in range(10):
        optimizer.tell(candidates[60 * i], Outcome.ok(0.1, memory_margin=-0.3))
    optimizer.ask()
    assert optimizer._region.size == 390
    for i in range(10):
        optimizer.tell(candidates[60 * i + 1], Outcome.ok(0.05, memory_margin=-0.3))
    optimizer.ask()
    assert optimizer._region.size == 195
    for i, value in enumerate((0.2, 0.3, 0.4)):
        optimizer.tell(candidates[60 * i + 2], Outcome.ok(value, memory_margin=-0.3))
    optimizer.ask()
    assert optimizer._region.size == 390


def test_lengthscales_are_floored_at_one_step_of_the_lattice():
    problem = parabolt.ImputedProblem(parabolt.load_problem("pco64"))
    optimizer = parabolt.make_optimizer("scbo", problem.space, seed=0)
    for row in np.random.default_rng(0).choice(780, 60, replace=False):
        configuration = problem.space.candidates[row]
        optimizer.tell(configuration, problem.evaluate(configuration))
    lower, upper = problem.instance.encoding.bounds
    for model in (optimizer.surrogate().objective, optimizer.surrogate().constraint):
        assert (model.gp.hyper.lengthscales >= (1 / (upper - lower)) * (1 - 1e-12)).all()
