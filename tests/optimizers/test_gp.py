"""The GP engine against GPyTorch/BoTorch, and against its own gradient by differences."""

import gpytorch
import numpy as np
import pytest
import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from hypothesis import given, settings
from hypothesis import strategies as st

import parabolt
from parabolt.optimizers.gp.fit import MIN_LENGTHSCALE, MIN_NOISE, LogPosterior, fit_gp
from parabolt.optimizers.gp.gp import GaussianProcess, Hyperparameters, Standardization


def observations(name="pco32", n=40, seed=0):
    """Normalised inputs and imputed throughputs of random rows of a measured table."""
    problem = parabolt.ImputedProblem(parabolt.load_problem(name))
    rng = np.random.default_rng(seed)
    X = problem.space.encoded[rng.choice(len(problem.space), n, replace=False)]
    lower, upper = problem.instance.encoding.bounds
    y = problem.evaluate_many(X).throughput + 0.001 * rng.standard_normal(n)
    return (X - lower) / (upper - lower), y


def hyperparameters(d, seed):
    rng = np.random.default_rng(seed)
    lengthscales = np.exp(rng.normal(0.3, 0.6, d))
    return Hyperparameters(lengthscales, float(np.exp(rng.normal(-4, 1))), float(rng.normal()))


def botorch_model(X, y, hyper):
    model = SingleTaskGP(
        torch.tensor(X), torch.tensor(y)[:, None], outcome_transform=Standardize(m=1)
    )
    model.covar_module.lengthscale = torch.tensor(hyper.lengthscales)
    model.likelihood.noise = hyper.noise
    model.mean_module.constant = torch.tensor(hyper.mean)
    return model


def standardised(y):
    s = Standardization.of(y)
    return (y - s.shift) / s.scale


@pytest.mark.parametrize("seed", range(4))
def test_marginal_likelihood_and_gradient_are_gpytorchs(seed):
    X, y = observations(seed=seed)
    hyper = hyperparameters(X.shape[1], seed)
    model = botorch_model(X, y, hyper)
    model.train()
    likelihood = model.likelihood(model(*model.train_inputs))
    expected = likelihood.log_prob(model.train_targets)
    expected.backward()
    value, gradient = LogPosterior(X, standardised(y)).marginal_likelihood(hyper)
    assert value == pytest.approx(expected.item(), rel=1e-8)
    # Both lengthscale and noise are used untransformed, so raw gradients are gradients.
    theirs = torch.cat([
        model.covar_module.raw_lengthscale.grad.ravel(),
        model.likelihood.noise_covar.raw_noise.grad.ravel(),
        model.mean_module.raw_constant.grad.ravel(),
    ]).numpy()  # fmt: skip
    assert gradient == pytest.approx(theirs, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_objective_of_the_fit_is_botorchs(seed):
    """Likelihood plus priors per observation, at the mean that is best for the likelihood."""
    X, y = observations(seed=seed)
    objective = LogPosterior(X, standardised(y))
    hyper = hyperparameters(X.shape[1], seed)
    theta = np.log(np.append(hyper.lengthscales, hyper.noise))
    model = botorch_model(X, y, objective.hyperparameters(theta))
    model.train()
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
    expected = mll(model(*model.train_inputs), model.train_targets).item()
    assert objective.negative(theta)[0] == pytest.approx(-expected, rel=1e-8)


@pytest.mark.parametrize("name", ["pco32", "pco64"])
def test_posterior_at_all_candidates_is_botorchs(name):
    X, y = observations(name)
    problem = parabolt.load_problem(name)
    lower, upper = problem.instance.encoding.bounds
    candidates = (problem.space.encoded - lower) / (upper - lower)
    hyper = hyperparameters(X.shape[1], 1)
    mean, std = GaussianProcess(X, y, hyper).predict(candidates)
    model = botorch_model(X, y, hyper)
    model.eval()
    with torch.no_grad():
        posterior = model.posterior(torch.tensor(candidates))
    assert mean == pytest.approx(posterior.mean.squeeze(-1).numpy(), rel=1e-8, abs=1e-8)
    assert std**2 == pytest.approx(posterior.variance.squeeze(-1).numpy(), rel=1e-8, abs=1e-8)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=25)
def test_gradient_is_the_difference_quotient(seed):
    rng = np.random.default_rng(seed)
    X, z = rng.random((9, 3)), rng.standard_normal(9)
    objective = LogPosterior(X, z)
    theta = np.append(rng.normal(0, 0.7, 3), rng.normal(-3, 1))
    gradient = objective.negative(theta)[1]
    for i, step in enumerate(1e-6 * np.eye(4)):
        up, down = objective.negative(theta + step)[0], objective.negative(theta - step)[0]
        quotient = (up - down) / 2e-6
        assert gradient[i] == pytest.approx(quotient, rel=1e-5, abs=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_fit_is_at_least_as_good_as_botorchs(seed):
    from botorch.fit import fit_gpytorch_mll

    X, y = observations(seed=seed, n=30)
    gp, succeeded = fit_gp(X, y)
    assert succeeded
    model = SingleTaskGP(
        torch.tensor(X), torch.tensor(y)[:, None], outcome_transform=Standardize(m=1)
    )
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
    fit_gpytorch_mll(mll)
    model.train()
    theirs = -mll(model(*model.train_inputs), model.train_targets).item()
    ours = LogPosterior(X, standardised(y)).negative(
        np.log(np.append(gp.hyper.lengthscales, gp.hyper.noise))
    )[0]
    assert ours <= theirs + 1e-6


def test_mean_of_the_fit_is_the_best_one():
    X, y = observations()
    gp, _ = fit_gp(X, y)
    gradient = LogPosterior(X, standardised(y)).marginal_likelihood(gp.hyper)[1]
    assert abs(gradient[-1]) < 1e-8


def test_prior_mode_is_where_botorch_starts():
    for d in (1, 8):
        model = SingleTaskGP(torch.rand(3, d), torch.rand(3, 1).double())
        mode = Hyperparameters.prior_mode(d)
        assert mode.lengthscales == pytest.approx(
            model.covar_module.lengthscale.detach().numpy()[0], rel=1e-6
        )
        assert mode.noise == pytest.approx(model.likelihood.noise.item(), rel=1e-6)


@pytest.mark.parametrize(
    "y", [[0.3], [0.3, 0.3, 0.3], [0.3, 0.4], [1e-12, 2e-12, 3e-12], [1e9, 2e9, 1.5e9]]
)
def test_few_or_equal_targets_give_finite_posteriors(y):
    X = np.random.default_rng(0).random((len(y), 4))
    gp, _ = fit_gp(X, np.array(y))
    mean, std = gp.predict(np.random.default_rng(1).random((50, 4)))
    assert np.isfinite(mean).all()
    assert (std > 0).all()
    assert (gp.hyper.lengthscales >= MIN_LENGTHSCALE * (1 - 1e-9)).all()
    assert gp.hyper.noise >= MIN_NOISE * (1 - 1e-9)


def test_repeated_inputs_are_no_trouble():
    X, y = observations(n=12)
    gp, succeeded = fit_gp(np.vstack([X] * 4), np.tile(y, 4))
    assert succeeded
    assert gp.predict(X)[0] == pytest.approx(y, abs=0.01)


def test_conditioning_is_a_fit_with_more_data_at_the_same_parameters():
    X, y = observations(n=20)
    hyper = hyperparameters(X.shape[1], 3)
    part = GaussianProcess(X[:15], y[:15], hyper, Standardization.of(y))
    whole = GaussianProcess(X, y, hyper)
    again = part.condition_on(X[15:], y[15:])
    assert again.predict(X)[0] == pytest.approx(whole.predict(X)[0], rel=1e-10)
    assert again.predict(X)[1] == pytest.approx(whole.predict(X)[1], rel=1e-10)


def test_a_fit_that_finds_nothing_better_falls_back_and_says_so(monkeypatch):
    """A search that ends where it began can't be had from real data."""
    import parabolt.optimizers.gp.fit as gp_module

    monkeypatch.setattr(gp_module, "minimize", lambda f, x, **_: f(x))
    X, y = observations(n=12)
    gp, succeeded = fit_gp(X, y)
    assert not succeeded
    assert gp.hyper.lengthscales == pytest.approx(Hyperparameters.prior_mode(8).lengthscales)
    assert np.isfinite(gp.predict(X)[0]).all()
