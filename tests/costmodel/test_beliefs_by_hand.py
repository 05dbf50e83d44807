"""Beliefs, failures and predictions against independent solutions of small cases."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import brentq

import parabolt
from parabolt.costmodel.calibration.belief import CoefficientBelief, Residuals, update
from parabolt.costmodel.calibration.calibration import Calibration
from parabolt.costmodel.calibration.evidence import StackedTrials
from parabolt.costmodel.calibration.failure import fit_failures, oom_probability
from parabolt.costmodel.calibration.likelihood import memory_residuals
from parabolt.costmodel.explanation import Explanation
from parabolt.costmodel.predictor import CostModel, Prediction
from parabolt.costmodel.step_time import TIME_TERMS
from parabolt.costmodel.terms.crash import CRASH_FEATURES
from parabolt.costmodel.terms.memory import MEMORY_TERMS
from parabolt.space.configuration import Configuration


def one_coefficient(sigma=0.05):
    return CoefficientBelief(("a",), np.array([0.2]), np.array([[0.09]]), sigma)


def about_one_coefficient(data):
    """Residuals of data that measure the coefficient's logarithm itself."""

    def residuals(z, sigma):
        n = len(data)
        return Residuals(data - z[0], np.ones((n, 1)), np.zeros(1), np.zeros((1, 1)), 0.0)

    return residuals


def test_variance_and_scatter():
    belief = CoefficientBelief(("a", "b"), np.zeros(2), np.array([[4.0, 1.0], [1.0, 9.0]]), 0.1)
    # 2^2 x 4 + 2 x 2 x 3 x 1 + 3^2 x 9.
    assert belief.variance(np.array([[2.0, 3.0], [1.0, 0.0]])).tolist() == [109.0, 4.0]
    wide = belief.widened(np.array([1.0, 2.0]))
    assert wide.covariance.tolist() == [[5.0, 1.0], [1.0, 13.0]]
    # Half of the central 90 % of a Student t with 4 degrees of freedom, as a normal's.
    normal = stats.t.ppf(0.95, 4) / stats.norm.ppf(0.95)
    assert belief.scatter == pytest.approx(0.1 * normal, rel=1e-4)


@pytest.mark.parametrize("data", [[0.3], [0.25, 0.3, 0.31, 0.9], np.linspace(-0.4, 0.6, 30)])
def test_update_against_an_independent_solution(data):
    """The mode of Student-t data under a Gaussian prior, with sigma estimated in turn."""
    data = np.array(data)
    prior = one_coefficient()
    sigma = prior.sigma

    def slope(z):
        e = data - z
        return (5.0 * e / (4.0 * sigma**2 + e**2)).sum() - (z - 0.2) / 0.09

    for _ in range(3):
        z = brentq(slope, -3.0, 3.0, xtol=1e-12)
        weights = 5.0 / (4.0 + ((data - z) / sigma) ** 2)
        curvature = weights.sum() / sigma**2 + 1 / 0.09
        n_free = max(len(data) - (1 - 1 / 0.09 / curvature), 0.0)
        total = 10.0 * prior.sigma**2 + (weights * (data - z) ** 2).sum()
        estimate = np.sqrt(total / (10.0 + n_free))
        if abs(np.log(estimate / sigma)) < 0.02:
            break
        sigma = estimate
    found = update(prior, about_one_coefficient(data))
    assert found.mean[0] == pytest.approx(z, abs=0.05 * np.sqrt(1 / curvature))
    assert found.sigma == pytest.approx(sigma, rel=2e-3)
    assert found.covariance[0, 0] == pytest.approx(1 / curvature, rel=5e-3)
    assert found.names == ("a",)


def test_update_without_data_gives_the_prior():
    prior = one_coefficient()
    found = update(prior, about_one_coefficient(np.zeros(0)))
    assert (found.mean, found.sigma) == (prior.mean, prior.sigma)
    assert found.covariance == pytest.approx(prior.covariance)


def trials(status, *, peak_gb=np.nan, memory_gb=1.0, capacity_gb=100.0):
    """Trials of one kind of run whose only term of memory is the weights.

    Args:
        status: `o` for a run that finished, `x` for one that ran out of memory, one each.
        peak_gb: Measured peak of those that finished.
        memory_gb: What the term says.
        capacity_gb: Memory of a GPU.
    """
    n = len(status)
    is_ok = np.array([s == "o" for s in status])
    memory = np.zeros((n, len(MEMORY_TERMS)))
    memory[:, 0] = memory_gb
    crash = np.zeros((n, len(CRASH_FEATURES)))
    crash[:, 0] = 1.0
    return StackedTrials(
        ("hand",), np.ones((n, len(TIME_TERMS))), memory, np.zeros((n, 3)), crash,
        np.full(n, np.nan), np.where(is_ok, peak_gb, np.nan), np.full(n, capacity_gb),
        is_ok, ~is_ok,
    )  # fmt: skip


def test_a_run_that_finished_shows_memory_that_is_usable():
    """Prior: ln usable ~ N(ln 0.94, 0.03). A run that finished with 97 of 100 GB used more."""
    prior = Calibration.prior()
    after, _ = fit_failures(prior.failures, prior.memory, trials("o", peak_gb=97.0))

    def density(log_usable):
        lived = stats.norm.cdf((log_usable - np.log(0.97)) / 0.003)
        return lived * stats.norm.pdf(log_usable, np.log(0.94), 0.03)

    def integral(function):  # the fit looks as far as three standard deviations
        low, high = np.log(0.94) - 0.09, np.log(0.94) + 0.09
        return quad(function, low, high, points=[np.log(0.97)], limit=200)[0]

    whole = integral(density)
    mean = integral(lambda u: u * density(u)) / whole
    square = integral(lambda u: (u - mean) ** 2 * density(u)) / whole
    assert np.log(after.usable) == pytest.approx(mean, abs=5e-4)
    assert after.usable_log_std == pytest.approx(np.sqrt(square), rel=0.03)


def test_an_out_of_memory_run_is_explained_by_memory_or_by_a_crash():
    """Prior: log-odds of a crash ~ N(-4.6, 1)."""
    prior = Calibration.prior()
    # Five runs die and 20 finish where memory is no matter: crashes.
    calm = trials("x" * 5 + "o" * 20, memory_gb=1.0)
    after, blame = fit_failures(prior.failures, prior.memory, calm)

    def slope(w):
        p = 1 / (1 + np.exp(-w))
        return 5 * (1 - p) - 20 * p - (w + 4.6)

    assert after.crash.mean[0] == pytest.approx(brentq(slope, -10, 5), abs=1e-3)
    p = 1 / (1 + np.exp(-after.crash.mean[0]))
    assert after.crash.covariance[0, 0] == pytest.approx(1 / (1 + 25 * p * (1 - p)), rel=1e-3)
    assert (after.crash.mean[1:] == 0.0).all()
    assert blame[:5] == pytest.approx(0.0, abs=1e-12)
    assert after.usable == pytest.approx(0.94, rel=1e-4)
    # The same runs at three times the memory: nothing else is to blame.
    full = trials("x" * 5, memory_gb=300.0)
    after, blame = fit_failures(prior.failures, prior.memory, full)
    assert blame == pytest.approx(1.0, abs=1e-6)
    assert after.crash.mean[0] == pytest.approx(-4.6, abs=1e-4)
    assert after.usable == pytest.approx(0.94, rel=1e-4)


def test_blame_where_memory_is_near_its_limit():
    """94 GB are predicted and 94 GB usable: one half by memory, and 1 % of the rest by a crash."""
    prior = Calibration.prior()
    tight = replace(prior.memory, covariance=1e-12 * prior.memory.covariance, sigma=1e-6)
    _, blame = fit_failures(prior.failures, tight, trials("x", memory_gb=94.0))
    # One such run moves the usable share down by about 0.03 x sqrt(2 / pi) of its logarithm, and
    # 0.018 remain of its doubt.
    shift, left = 0.03 * np.sqrt(2 / np.pi), 0.03 * np.sqrt(1 - 2 / np.pi)
    by_memory = stats.norm.cdf(shift / left)
    either = by_memory + (1 - by_memory) * 0.01
    assert blame[0] == pytest.approx(by_memory / either, rel=0.01)


def test_the_likelihood_of_a_censored_peak():
    """ln Phi((ln peak - ln usable memory) / sigma), as far as memory is to blame."""
    prior = Calibration.prior()
    near = trials("xo", memory_gb=94.0, peak_gb=80.0)
    residuals = memory_residuals(near, 0.9, np.array([0.25, 0.0]))(prior.memory.mean, 0.02)
    excess = np.log(94.0 / 90.0) / 0.02
    assert residuals.loss == pytest.approx(-0.25 * stats.norm.logcdf(excess))
    assert residuals.values == pytest.approx([np.log(80.0 / 94.0)])
    # The derivative of ln Phi is the inverse Mills ratio; weights are all of the peak.
    mills = stats.norm.pdf(excess) / stats.norm.cdf(excess)
    assert residuals.gradient[0] == pytest.approx(0.25 * mills / 0.02)
    assert residuals.curvature[0, 0] == pytest.approx(0.25 * mills * (mills + excess) / 0.02**2)
    assert (residuals.gradient[1:] == 0.0).all()


def test_the_probability_of_an_oom_by_hand():
    # 90 GB +- 3 % on 100 GB of which 94 % +- 4 % are usable: 5 % apart, in standard deviations.
    found = oom_probability(
        np.log([90.0, 94.0]), np.array([0.03**2, 0.0]), np.log([100.0, 100.0]), 0.94, 0.04
    )
    assert found == pytest.approx([stats.norm.cdf(np.log(90 / 94) / 0.05), 0.5])


def test_an_interval_covers_what_it_says():
    log_std = np.array([0.1, 0.2])
    two = np.array([2.0, 4.0])
    found = Prediction(two, log_std, two, log_std, two)
    assert found.throughput == pytest.approx([0.5, 0.25])
    low, high = found.throughput_interval(0.9)
    assert low == pytest.approx(found.throughput * np.exp(-1.6448536 * log_std))
    assert high == pytest.approx(found.throughput * np.exp(1.6448536 * log_std))
    low, high = found.throughput_interval(0.5)
    assert high == pytest.approx(found.throughput * np.exp(0.6744898 * log_std))


def test_a_prediction_adds_doubts_and_risks():
    """Variance of the coefficients and scatter; a run dies of memory, or else of a crash."""
    instance = parabolt.load_instance("pco32")
    configuration = parabolt.load_problem("pco32").optimum.configuration
    prior = Calibration.prior()
    found = CostModel(instance, prior).predict([configuration])
    time = CostModel(instance).explain(configuration).time_s
    shares = np.array(list(time.values())) / sum(time.values())
    stds = np.array([term.log_std for term in TIME_TERMS])
    variance = (shares**2 * stds**2).sum() + prior.time.scatter**2
    assert found.log_time_std[0] == pytest.approx(np.sqrt(variance))
    sure = replace(prior.failures.crash, mean=np.where(np.arange(14) == 0, 40.0, 0.0))
    doomed = replace(prior, failures=replace(prior.failures, crash=sure))
    assert CostModel(instance, doomed).predict([configuration]).p_oom[0] == pytest.approx(1.0)
    never = replace(sure, mean=-sure.mean)
    lucky = replace(prior, failures=replace(prior.failures, crash=never))
    by_memory = CostModel(instance, lucky).predict([configuration]).p_oom[0]
    even = replace(prior, failures=replace(prior.failures, crash=replace(sure, mean=0 * sure.mean)))
    found = CostModel(instance, even).predict([configuration]).p_oom[0]
    assert found == pytest.approx(by_memory + 0.5 * (1 - by_memory))


def test_transfer_adds_half_of_the_first_doubts():
    prior = Calibration.prior()
    sharp = replace(
        prior,
        time=replace(prior.time, covariance=1e-4 * np.eye(len(TIME_TERMS)), sigma=0.01),
        memory=replace(prior.memory, sigma=0.5),
        failures=replace(prior.failures, usable_log_std=0.02),
    )
    moved = sharp.transferred()
    stds = np.array([term.log_std for term in TIME_TERMS])
    assert np.diag(moved.time.covariance) == pytest.approx(1e-4 + 0.25 * stds**2)
    assert moved.time.sigma == prior.time.sigma
    assert moved.memory.sigma == 0.5
    assert moved.failures.usable_log_std == pytest.approx(np.hypot(0.02, 0.015))
    crash = moved.failures.crash
    assert np.diag(crash.covariance) == pytest.approx(1.25 * np.ones(len(CRASH_FEATURES)))
    assert moved.failures.usable == prior.failures.usable
    assert np.diag(sharp.transferred(1.0).time.covariance) == pytest.approx(1e-4 + stds**2)


def explained(**seconds):
    time = {term.name: seconds.get(term.name, 0.0) for term in TIME_TERMS}
    memory = dict.fromkeys((term.name for term in MEMORY_TERMS), 2.0)
    return Explanation(Configuration(bucket=64), time, memory, 80.0, 0.1, 0.05, 0.25, ("a guess",))


def test_what_bounds_a_configuration():
    assert explained(matmul=9.0, tensor_sync=0.6, tensor_bandwidth=0.5).bound_by == (
        "tensor parallelism"
    )
    assert explained(matmul=9.0, tensor_sync=0.4, tensor_bandwidth=0.5).bound_by == "compute"
    assert explained(matmul=9.0, zero3_layers=1.0).bound_by == "data parallelism"
    assert explained(matmul=9.0, bubble=1.5, context_sync=1.4).bound_by == "pipeline bubble"
    assert explained(matmul=9.0, pipeline_sync=1.5, context_sync=1.4).bound_by == (
        "pipeline messages"
    )
    assert explained(matmul=9.0, context_contention=2).bound_by == "context parallelism"


def test_an_explanation_in_words():
    found = explained(matmul=3.0, fixed=1.0, launch=0.0004)
    assert found.step_time_s == 4.0004
    assert found.peak_memory_gib == 2.0 * len(MEMORY_TERMS)
    lines = str(found).splitlines()
    assert lines[1:4] == [
        "step time 4.000 s +- 10 %",
        "  matmul                  3.000 s  75.0 %",
        "  fixed                   1.000 s  25.0 %",
    ]
    assert lines[4] == "peak memory 22.000 GiB +- 5 %"
    assert lines[-2:] == ["P(out of memory) 0.250, bound by compute", "assumed: a guess"]
