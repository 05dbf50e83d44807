import numpy as np
import pytest

import parabolt
from parabolt.costmodel.calibration.belief import CoefficientBelief
from parabolt.optimizers.physics.structure import structure_inputs
from parabolt.optimizers.physics.throughput_model import Residual, ThroughputModel


def small_model(n=12, k=3, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.uniform(0.2, 2.0, (n, k))
    inputs = rng.uniform(0, 2, (n, 4))
    belief = CoefficientBelief(tuple("abc"[:k]), rng.normal(0, 0.3, k), 0.2 * np.eye(k), 0.03)
    return ThroughputModel(features, inputs, belief), rng


def test_posterior_is_gaussian_conditioning_written_out():
    model, rng = small_model()
    at, y = np.array([1, 4, 7, 4]), rng.normal(-1, 0.1, 4)
    model = model.fit(at, y)
    posterior = model.posterior(at, y)
    # The same linear model at the same z, with dense matrices over everything.
    parts = model._features * np.exp(model.z)
    J = -parts / parts.sum(axis=1, keepdims=True)
    prior = -np.log(parts.sum(axis=1)) + J @ (model._belief.mean - model.z)
    K = J @ model._belief.covariance @ J.T + model.residual.kernel(model._inputs, model._inputs)
    K += 0.002**2 * np.eye(len(K))
    A = K[np.ix_(at, at)] + model.residual.noise**2 * np.eye(4)
    mean = prior + K[:, at] @ np.linalg.solve(A, y - prior[at])
    covariance = K - K[:, at] @ np.linalg.solve(A, K[at])
    assert posterior.mean == pytest.approx(mean, abs=1e-9)
    assert posterior.std**2 == pytest.approx(np.diag(covariance), abs=1e-9)
    assert posterior.best == at[np.argmax(mean[at])]
    assert posterior.shared == pytest.approx(covariance[posterior.best], abs=1e-9)
    difference = np.diag(covariance) + covariance[posterior.best, posterior.best]
    difference = difference - 2 * covariance[posterior.best]
    assert posterior.gain_std() ** 2 == pytest.approx(np.maximum(difference, 1e-10), abs=1e-9)


def test_without_trials_it_is_the_prior():
    model, _ = small_model()
    posterior = model.posterior(np.array([], dtype=int), np.array([]))
    assert posterior.best is None
    total = (model._features * np.exp(model._belief.mean)).sum(axis=1)
    assert np.exp(posterior.mean) == pytest.approx(1.0 / total)


def test_data_from_the_physics_settle_the_coefficients():
    model, rng = small_model(n=60, seed=1)
    truth = model._belief.mean + rng.normal(0, 0.4, 3)
    y = -np.log((model._features * np.exp(truth)).sum(axis=1))
    at = np.arange(0, 60, 2)
    told = y[at] + 0.003 * rng.standard_normal(30)
    model = model.fit(at, told)
    posterior = model.posterior(at, told)
    assert np.abs(posterior.mean - y).max() < 0.03
    assert model.residual.std <= 0.04


def test_where_physics_is_wrong_the_residual_takes_over():
    model, _ = small_model(n=80, seed=2)
    y = 0.5 * model._inputs[:, 0] + model._inputs[:, 1]
    at = np.arange(0, 80, 2)
    model = model.fit(at, y[at])
    posterior = model.posterior(at, y[at])
    assert model.residual.std >= 0.3
    left = np.setdiff1d(np.arange(80), at)
    physics_alone = -np.log((model._features * np.exp(model._belief.mean)).sum(axis=1))
    assert abs(np.corrcoef(physics_alone[left], y[left])[0, 1]) < 0.3
    assert np.corrcoef(posterior.mean[left], y[left])[0, 1] > 0.5
    assert np.abs(posterior.mean[at] - y[at]).max() < 0.05


def test_a_slow_run_is_half_its_own_where_noise_is_large():
    model, rng = small_model(n=60, seed=3)
    y = -np.log((model._features * np.exp(model._belief.mean)).sum(axis=1))
    at, told = np.append(np.arange(40), [7, 7]), np.append(y[:40], [y[7], y[7]])
    model = model.fit(at, told)
    mean = model.posterior(at, told).mean
    assert model.residual.noise == 0.004
    assert model.expected(mean, at, told) == pytest.approx(mean)
    told = told + 0.03 * rng.standard_normal(42)
    model = model.fit(at, told)
    mean = model.posterior(at, told).mean
    share = 0.5 * (1 - (0.004 / model.residual.noise) ** 2)
    assert 0.45 < share < 0.5
    expected = model.expected(mean, at, told)
    assert expected[7] == pytest.approx(mean[7] + share * (told[[7, 40, 41]].mean() - mean[7]))
    assert expected[8] == pytest.approx(mean[8] + share * (told[8] - mean[8]))
    assert expected[40:] == pytest.approx(mean[40:])


def test_noise_is_learned():
    model, rng = small_model(n=60, seed=3)
    y = -np.log((model._features * np.exp(model._belief.mean)).sum(axis=1))
    at = np.arange(60)
    model = model.fit(at, y + 0.03 * rng.standard_normal(60))
    assert model.residual.noise >= 0.016
    model = model.fit(at, y + 0.003 * rng.standard_normal(60))
    assert model.residual.noise <= 0.008


def test_a_fit_changes_no_other_model():
    model, rng = small_model(n=60, seed=3)
    at = np.arange(60)
    y = -np.log((model._features * np.exp(model._belief.mean)).sum(axis=1))
    before = model.posterior(at, y)
    fitted = model.fit(at, y + 0.03 * rng.standard_normal(60))
    assert fitted.residual != model.residual
    assert np.array_equal(model.posterior(at, y).mean, before.mean)


def test_inputs_say_what_can_matter():
    space = parabolt.load_problem("pco64").space
    inputs = structure_inputs(space, np.arange(len(space)))
    candidates = list(space.candidates)

    def distance(text, other):
        rows = [space.row(parabolt.Configuration.parse(t)) for t in (text, other)]
        return np.linalg.norm(inputs[rows[0]] - inputs[rows[1]])

    inert = distance("dp16 tp1 pp4 bucket64 chunks4", "dp16 tp1 pp4 bucket512 chunks4")
    active = distance("dp16 tp4 sp4 bucket64 zero2", "dp16 tp4 sp4 bucket512 zero2")
    fine = distance("dp16 tp4 sp2 bucket64 zero2", "dp16 tp4 sp4 bucket64 zero2")
    switch = distance("dp16 tp4 sp1 bucket64 zero2", "dp16 tp4 sp2 bucket64 zero2")
    assert inert == 0.0
    assert active == pytest.approx(1.5)
    assert fine < 0.2 < 1.0 <= switch
    assert len(candidates) == len(inputs)


def test_kernel_by_hand():
    residual = Residual(std=0.1, lengthscale=2.0)
    K = residual.kernel(np.array([[0.0, 0.0]]), np.array([[0.0, 0.0], [2.0, 0.0]]))
    assert K[0] == pytest.approx([0.01, 0.01 * np.exp(-0.5)])
