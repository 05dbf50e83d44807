import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import parabolt
from parabolt.optimizers.gp.fit import GPOptions, LogPosterior, fit_gp
from parabolt.optimizers.gp.gp import GaussianProcess, Standardization
from parabolt.optimizers.gp.prior_mean import MemoryMean, ThroughputMean


def inputs(name):
    space = parabolt.load_problem(name).space
    lower, upper = space.instance.encoding.bounds
    return space.instance, (space.encoded - lower) / (upper - lower)


def row_of(name, text):
    return parabolt.load_problem(name).space.row(parabolt.Configuration.parse(text))


def test_throughput_by_hand():
    """dp 16, tp 2 on 32 GPUs of 4 per host: 2 data-parallel ranks in each of 8 hosts."""
    instance, X = inputs("pco32")
    row = row_of("pco32", "dp=16 tp=2 zero=3 bucket=64")
    mean = ThroughputMean(instance, 0)
    F = mean.features(X)[row]
    assert F[:2] == pytest.approx([1 / 32, 0.0])
    data_parallel = [2 * (2 - 1), 1 / 2 * 1 / 2, 2 * (8 - 1), 7 / 8 * 1 / 2, 15 / 16 * 1 / 2]
    assert F[2:7] == pytest.approx(data_parallel)
    assert F[7:] == pytest.approx([2 * (2 - 1), 1 / 2 * 1 / 16, 0.0, 0.0])
    theta = np.log(np.arange(1.0, 12.0))
    assert mean.value(F[None], theta) == pytest.approx(1 / (F @ np.arange(1.0, 12.0)))


def test_pipeline_by_hand():
    instance, X = inputs("pco32")
    F = ThroughputMean(instance, 0).features(X)[row_of("pco32", "dp=8 pp=4 bucket=64")]
    assert F[0] == pytest.approx((1 + 3 / 4) / 32)
    assert F[9:] == pytest.approx([2 * 3 * 4, 2 * 3 * 4 / (8 * 4)])


def test_the_weight_of_communication_decays_to_nothing_at_step_20():
    instance, X = inputs("pco32")
    full = ThroughputMean(instance, 0).features(X)
    for step, weight in ((0, 1.0), (10, math.cos(math.pi / 4)), (20, 0.0), (99, 0.0)):
        F = ThroughputMean(instance, step).features(X)
        assert F[:, 2:] == pytest.approx(weight * full[:, 2:], abs=1e-15)
        assert F[:, 1] == pytest.approx(1 - weight)


def test_memory_by_hand():
    instance, X = inputs("pco32")
    mean = MemoryMean(instance)
    F = mean.features(X)[[row_of("pco32", "dp=4 tp=2 pp=2 cp=2 bucket=64")]]
    assert F[0] == pytest.approx([1 / 4, 1 / 4, 1.0])
    theta = np.log([96.0, 48.0, 12.0])  # 24 + 12 + 12 GB of 96: half full
    assert mean.value(F, theta) == pytest.approx(-0.5, abs=1e-6)
    assert mean.value(F, theta + 50.0) == pytest.approx(0.2)


@pytest.mark.parametrize("kind", [lambda i: ThroughputMean(i, 3), MemoryMean])
@given(seed=st.integers(0, 1000))
@settings(max_examples=15)
def test_jacobian_is_the_difference_quotient(kind, seed):
    instance, X = inputs("pco64")
    mean, rng = kind(instance), np.random.default_rng(seed)
    F = mean.features(X[rng.choice(len(X), 7)])
    theta = mean.initial(F, np.full(7, 0.2)) + rng.normal(0, 0.5, F.shape[1])
    jacobian = mean.value_and_jacobian(F, theta)[1]
    for k, step in enumerate(1e-6 * np.eye(len(theta))):
        quotient = (mean.value(F, theta + step) - mean.value(F, theta - step)) / 2e-6
        assert jacobian[:, k] == pytest.approx(quotient, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("kernel", ["rbf", "matern52"])
def test_gradient_of_the_fit_is_the_difference_quotient(kernel):
    instance, X = inputs("pco64")
    rng = np.random.default_rng(0)
    X, y = X[rng.choice(len(X), 15, replace=False)], 0.2 + 0.05 * rng.standard_normal(15)
    s = Standardization.of(y)
    objective = LogPosterior(
        X, s.apply(y), kernel=kernel, prior_mean=ThroughputMean(instance, 2), standardization=s
    )
    at = np.concatenate([rng.normal(0, 0.5, 8), [-4.0], objective.theta_loc + rng.normal(0, 1, 11)])
    gradient = objective.negative(at)[1]
    for k, step in enumerate(1e-6 * np.eye(len(at))):
        quotient = (objective.negative(at + step)[0] - objective.negative(at - step)[0]) / 2e-6
        assert gradient[k] == pytest.approx(quotient, rel=1e-4, abs=1e-7)


def test_starts_where_all_terms_share_the_mean_step_time():
    instance, X = inputs("pco64")
    mean, y = ThroughputMean(instance, 5), np.array([0.1, 0.2, 0.25])
    F = mean.features(X[[0, 300, 700]])
    terms = F * np.exp(mean.initial(F, y))
    seen = F.mean(axis=0) > 0
    assert terms.mean(axis=0)[seen] == pytest.approx(np.mean(1 / y) / F.shape[1])


def test_a_mean_of_the_right_form_predicts_far_from_the_data():
    """Targets that the mean can express are learned from 25 rows, for all 780."""
    instance, X = inputs("pco64")
    truth = ThroughputMean(instance, 0)
    F = truth.features(X)
    rng = np.random.default_rng(1)
    y = truth.value(F, truth.initial(F, np.full(780, 0.2)) + rng.normal(0, 1, 11))
    rows = rng.choice(780, 25, replace=False)
    with_mean, succeeded = fit_gp(X[rows], y[rows], GPOptions(prior_mean=truth))
    without, _ = fit_gp(X[rows], y[rows])
    assert succeeded
    error = [np.sqrt(np.mean((gp.predict(X)[0] - y) ** 2)) for gp in (with_mean, without)]
    assert error[0] < 0.5 * error[1]


def test_conditioning_keeps_the_mean():
    instance, X = inputs("pco64")
    mean, y = MemoryMean(instance), np.linspace(-0.7, 0.1, 12)
    gp, _ = fit_gp(X[:240:20], y, GPOptions(prior_mean=mean))
    part = GaussianProcess(
        gp.X[:9], y[:9], gp.hyper, gp.standardization, prior_mean=mean
    ).condition_on(gp.X[9:], y[9:])
    assert part.predict(X)[0] == pytest.approx(gp.predict(X)[0], rel=1e-8, abs=1e-10)


class Overflowing(ThroughputMean):
    """A mean that is not a number at any parameters."""

    def value_and_jacobian(self, F, theta):
        m, jacobian = super().value_and_jacobian(F, theta)
        return m * np.nan, jacobian


def test_a_failed_fit_gives_way_to_a_constant_mean():
    instance, X = inputs("pco64")
    y = np.linspace(0.1, 0.2, 12)
    gp, succeeded = fit_gp(X[:240:20], y, GPOptions(prior_mean=Overflowing(instance, 0)))
    assert not succeeded
    assert gp.prior_mean is None
    assert gp.hyper.lengthscales == pytest.approx(fit_gp(X[:240:20], y)[0].hyper.lengthscales)
