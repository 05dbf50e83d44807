"""Cases that small faults in optimizers contradict: by hand, or by other implementations."""

import numpy as np
import pytest
from scipy.stats import norm

import parabolt
from parabolt.optimizers.choice import TIE, first_best
from parabolt.optimizers.gp.gp import GaussianProcess, Hyperparameters, Standardization
from parabolt.optimizers.gp.surrogate import Model, Surrogate
from parabolt.optimizers.published.noisy_improvement import log_noisy_constrained_ei
from parabolt.outcome import Outcome


def textbook(gp, X):
    """Mean and variance at X (N, d) by the formulas of a textbook, with inverses."""
    ell, s = gp.hyper.lengthscales, gp.hyper.noise
    shift, scale = gp.standardization.shift, gp.standardization.scale

    def k(a, b):
        return np.exp(-0.5 * (((a - b) / ell) ** 2).sum())

    A = np.array([[k(a, b) + s * (i == j) for j, b in enumerate(gp.X)] for i, a in enumerate(gp.X)])
    inverse, z = np.linalg.inv(A), (gp.y - shift) / scale
    cross = np.array([[k(x, b) for b in gp.X] for x in X])
    mean = shift + scale * (gp.hyper.mean + cross @ inverse @ (z - gp.hyper.mean))
    variance = scale**2 * (1.0 - np.einsum("ij,jk,ik->i", cross, inverse, cross))
    return mean, variance


def made_gp(seed=0, n=5, d=2, noise=0.05):
    rng = np.random.default_rng(seed)
    hyper = Hyperparameters(np.array([0.3, 0.8])[:d], noise, mean=0.2)
    return GaussianProcess(rng.random((n, d)), 3.0 + 2.0 * rng.standard_normal(n), hyper), rng


def test_posterior_is_that_of_the_textbook():
    gp, rng = made_gp()
    X = rng.random((7, 2))
    mean, std = gp.predict(X)
    expected_mean, expected_variance = textbook(gp, X)
    assert mean == pytest.approx(expected_mean, rel=1e-9)
    assert std**2 == pytest.approx(expected_variance, rel=1e-7)
    assert np.diag(gp.covariance(X, X)) == pytest.approx(expected_variance, rel=1e-7)


def test_a_fantasy_keeps_the_mean_there_and_takes_the_doubt():
    gp, rng = made_gp()
    candidates = np.vstack([gp.X, rng.random((4, 2))])
    before = Surrogate(candidates, Model(gp, np.arange(5)), Model(gp, np.arange(5)))
    after = before.fantasize((6, 8))
    told = GaussianProcess(
        np.vstack([gp.X, candidates[[6, 8]]]), np.append(gp.y, before.mean[[6, 8]]),
        gp.hyper, gp.standardization,
    )  # fmt: skip
    mean, variance = textbook(told, candidates)
    assert after.mean == pytest.approx(mean, rel=1e-8)
    assert after.mean == pytest.approx(before.mean, rel=1e-8)
    assert after.std**2 == pytest.approx(variance, rel=1e-6)
    assert (after.std[[6, 8]] < before.std[[6, 8]]).all()
    assert after.margin_std == pytest.approx(after.std)
    assert after.objective.rows.tolist() == after.constraint.rows.tolist() == [0, 1, 2, 3, 4, 6, 8]


def test_what_is_pending_counts_as_if_it_had_given_what_is_expected():
    problem = parabolt.ImputedProblem(parabolt.load_problem("pco32"))
    optimizer = parabolt.make_optimizer("ucbc", problem.space, seed=0, repeats="allow")
    for row in range(0, 360, 24):
        configuration = problem.space.candidates[row]
        optimizer.tell(configuration, problem.evaluate(configuration))
    first, every = problem.space.row(optimizer.ask()), np.arange(len(problem.space))
    surrogate = optimizer.surrogate()
    with_it = optimizer._choose(surrogate.fantasize((first,)), every)
    assert with_it != optimizer._choose(surrogate, every)
    assert problem.space.row(optimizer.ask()) == with_it


def test_where_no_baseline_fits_the_best_value_is_six_deviations_below_its_least():
    """With lengthscales this short a candidate knows nothing of the baseline: all is exact."""
    rng = np.random.default_rng(0)
    baseline, X = rng.random((4, 2)), rng.random((6, 2)) + 5.0
    hyper = Hyperparameters(np.full(2, 0.01), 0.01, mean=0.2)
    gp = GaussianProcess(baseline, np.array([1.0, 4.0, 2.0, 7.0]), hyper)
    never = GaussianProcess(baseline, np.full(4, 1.0), hyper, Standardization(1.0, 0.05))
    ours = log_noisy_constrained_ei(gp, never, baseline, X, 64, np.random.default_rng(0))
    mean, std = gp.predict(baseline)
    floor = (mean - 6.0 * std).min()
    at, scale = gp.standardization.shift + 0.2 * gp.standardization.scale, gp.standardization.scale
    u = (at - floor) / scale
    expected = np.log(scale * (norm.pdf(u) + u * norm.cdf(u))) + norm.logcdf(-(1.0 + 0.01) / 0.05)
    assert ours == pytest.approx(np.full(6, expected), rel=1e-6)


def test_noisy_improvement_by_monte_carlo():
    """Joint normal samples of baseline and candidate, counted: nothing in closed form."""
    gp, rng = made_gp(noise=0.3)
    x = rng.random((1, 2))
    points = np.vstack([gp.X[:3], x])
    mean = gp.predict(points)[0]
    root = np.linalg.cholesky(gp.covariance(points, points) + 1e-10 * np.eye(4))
    f = mean + np.random.default_rng(1).standard_normal((400_000, 4)) @ root.T
    expected = np.maximum(f[:, 3] - f[:, :3].max(axis=1), 0.0).mean()
    ours = log_noisy_constrained_ei(gp, None, gp.X[:3], x, 4096, np.random.default_rng(2))
    assert np.exp(ours[0]) == pytest.approx(expected, rel=0.02)


def test_the_first_of_equals_is_best():
    values = np.array([-3.0, 1.0, 1.0 + 0.5 * TIE, 0.5])
    assert first_best(values) == 1
    assert first_best(np.array([1.0, 1.0 + 2.5 * TIE])) == 1
    assert first_best(np.array([0.0, 0.5 * TIE])) == 1
    assert first_best(np.array([0.0, 0.5 * TIE]), unit=1.0) == 0
    assert first_best(np.array([-2.0, -2.0 + TIE, -1.0])) == 2
    assert first_best(np.full(3, -np.inf)) == 0
    assert first_best(np.array([-np.inf, -5.0])) == 1


def test_doubt_needs_forecasts_that_were_worse_than_the_running_mean():
    """A three-fold miss is doubt where runs are alike, and none where they spread as much."""
    space = parabolt.load_problem("pco32").space

    def doubtful(throughputs, expected):
        optimizer = parabolt.make_optimizer("parabolt", space, seed=0)
        for row, throughput in enumerate(throughputs):
            optimizer.history.add(row, Outcome.ok(throughput, memory_margin=-0.3))
        optimizer._forecasts = [(0.0, np.log(x)) for x in expected]
        return optimizer._is_doubtful()

    alike, spread = [0.2] * 6, [0.02, 2.0, 0.02, 2.0, 0.02, 2.0]
    assert doubtful(alike, [0.6] * 6)
    assert not doubtful(alike, [0.21] * 6)
    assert not doubtful(spread, [3 * x for x in spread])
    assert not doubtful(alike[:2], [0.6] * 2)


def test_doubt_needs_failures_that_were_not_forecast():
    space = parabolt.load_problem("pco32").space

    def doubtful(n_failed, n_ok, risk):
        optimizer = parabolt.make_optimizer("parabolt", space, seed=0)
        for row in range(n_failed + n_ok):
            outcome = Outcome.oom() if row < n_failed else Outcome.ok(0.2, memory_margin=-0.3)
            optimizer.history.add(row, outcome)
        optimizer._forecasts = [(risk, np.log(0.2))] * (n_failed + n_ok)
        return optimizer._is_doubtful()

    assert doubtful(4, 0, 0.1)
    assert doubtful(2, 2, 0.2)
    assert not doubtful(2, 2, 0.3)  # twice the forecast is no less than the share that failed
    assert not doubtful(4, 0, 0.9)
    assert not doubtful(1, 3, 0.0)
    assert not doubtful(3, 0, 0.0)
