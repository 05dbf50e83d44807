"""Joint samples against the posterior that BoTorch gives at the same hyper-parameters."""

import numpy as np
import pytest
import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from scipy.stats import ks_2samp

import parabolt
from parabolt.optimizers.gp.gp import GaussianProcess, Hyperparameters
from parabolt.optimizers.gp.kernels import kernel_matrix
from parabolt.optimizers.gp.product_set import ProductSet
from parabolt.optimizers.gp.sampling import draw_by_cholesky, draw_by_update
from parabolt.outcome import Outcome


@pytest.fixture(scope="module")
def case():
    """A GP on 25 rows of pco64, all inputs, and BoTorch's posterior mean and covariance."""
    problem = parabolt.ImputedProblem(parabolt.load_problem("pco64"))
    lower, upper = problem.instance.encoding.bounds
    X = (problem.space.encoded - lower) / (upper - lower)
    rng = np.random.default_rng(0)
    rows = rng.choice(len(X), 25, replace=False)
    y = problem.evaluate_many(problem.space.encoded[rows]).throughput
    hyper = Hyperparameters(np.exp(rng.normal(0.0, 0.5, 8)), 0.01, 0.2)
    model = SingleTaskGP(
        torch.tensor(X[rows]), torch.tensor(y)[:, None], outcome_transform=Standardize(m=1)
    ).double()
    model.covar_module.lengthscale = torch.tensor(hyper.lengthscales)
    model.likelihood.noise = hyper.noise
    model.mean_module.constant = torch.tensor(hyper.mean, dtype=torch.double)
    model.eval()
    with torch.no_grad():
        posterior = model.posterior(torch.tensor(X))
    mean = posterior.mean.numpy().ravel()
    covariance = posterior.distribution.covariance_matrix.numpy()
    return GaussianProcess(X[rows], y, hyper), X, rows, mean, covariance


def assert_moments(samples, mean, covariance):
    """Each estimated moment within five of its standard errors."""
    n, variance = len(samples), np.diag(covariance)
    error = np.abs(samples.mean(axis=0) - mean) / np.sqrt(variance / n)
    assert error.max() < 5.0
    spread = np.sqrt((np.outer(variance, variance) + covariance**2) / n)
    assert (np.abs(np.cov(samples.T) - covariance) / spread).max() < 5.0


def test_samples_over_the_product_have_the_posteriors_mean_and_covariance(case):
    gp, X, rows, mean, covariance = case
    product = ProductSet.of(X)
    samples = draw_by_update(gp, X, rows, product, 4000, np.random.default_rng(1))
    at = np.random.default_rng(2).choice(len(X), 40, replace=False)
    assert_moments(samples[:, at], mean[at], covariance[np.ix_(at, at)])


def test_samples_by_cholesky_have_the_posteriors_mean_and_covariance(case):
    gp, X, _, mean, covariance = case
    at = np.random.default_rng(2).choice(len(X), 40, replace=False)
    samples = draw_by_cholesky(gp, X[at], 4000, np.random.default_rng(3))
    assert_moments(samples, mean[at], covariance[np.ix_(at, at)])


def test_covariance_is_botorchs(case):
    gp, X, _, _, covariance = case
    assert gp.covariance(X[:50], X) == pytest.approx(covariance[:50], rel=1e-7, abs=1e-10)


@pytest.mark.parametrize("name", ["pco32", "pco64"])
def test_a_product_set_holds_every_candidate_and_pays(name):
    X = parabolt.load_problem(name).space.encoded
    product = ProductSet.of(X)
    sizes = [len(values) for values in product.values]
    index = np.unravel_index(product.cell, sizes)
    rebuilt = np.empty_like(X)
    for group, values, i in zip(product.groups, product.values, index, strict=True):
        rebuilt[:, group] = values[i]
    assert np.array_equal(rebuilt, X)
    assert np.prod(sizes) * sum(sizes) < len(X) ** 3 / 300


def test_prior_samples_over_a_product_have_the_kernel_as_covariance():
    X = parabolt.load_problem("pco32").space.encoded / 5.0
    lengthscales = np.linspace(0.4, 2.0, 8)
    samples = ProductSet.of(X).draw(lengthscales, 4000, np.random.default_rng(0))
    at = np.random.default_rng(1).choice(len(X), 40, replace=False)
    K = kernel_matrix("rbf", X[at], X[at], lengthscales)
    assert_moments(samples[:, at], np.zeros(40), K)


def test_groups_are_found_where_a_stride_would_miss_levels():
    """A million-row lattice whose fastest input divides the stride of a regular cut-out."""
    levels = np.stack(np.meshgrid(*[np.arange(12.0)] * 5, indexing="ij"), axis=-1).reshape(-1, 5)
    product = ProductSet.of(levels)
    assert sorted(len(values) for values in product.values) == [12] * 5


def told(name, kernel="rbf"):
    problem = parabolt.ImputedProblem(parabolt.load_problem("pco32"))
    optimizer = parabolt.make_optimizer(name, problem.space, seed=0, kernel=kernel)
    rows = np.random.default_rng(5).choice(len(problem.space), 20, replace=False)
    for row in rows:
        configuration = problem.space.candidates[row]
        optimizer.tell(configuration, problem.evaluate(configuration))
    return optimizer


@pytest.mark.parametrize("kernel", ["rbf", "matern52"])
def test_sampled_maxima_are_distributed_as_of_plain_gaussian_samples(kernel):
    """Two-sample Kolmogorov-Smirnov against maxima from the joint normal of both posteriors."""
    optimizer = told("cmes", kernel)
    surrogate = optimizer.surrogate()
    maxima = optimizer.sample_maxima(surrogate, 1500)
    rng, X = np.random.default_rng(9), surrogate.candidates
    draws = []
    for gp in (surrogate.objective.gp, surrogate.constraint.gp):
        covariance = gp.covariance(X, X)
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        draws.append(gp.predict(X)[0] + rng.standard_normal((1500, len(X))) @ root.T)
    expected = np.where(draws[1] <= 0.0, draws[0], -np.inf).max(axis=1)
    assert ks_2samp(maxima, expected).pvalue > 0.01


def test_cmes_values_are_those_of_its_equation():
    """Eq. 6, written out with plain probabilities where these are accurate."""
    from scipy.stats import norm

    optimizer = told("cmes")
    surrogate = optimizer.surrogate()
    optimizer.sample_maxima = lambda *_: np.array([0.30, 0.42, -np.inf])
    p_feasible = np.exp(surrogate.log_feasible)
    total = 0.0
    for maximum in (0.30, 0.42, -np.inf):
        exceeds = 1.0 - norm.cdf((maximum - surrogate.mean) / surrogate.std)
        total = total - np.log(np.maximum(1.0 - exceeds * p_feasible, 1e-12))
    assert optimizer._acquisition(surrogate) == pytest.approx(total / 3, rel=1e-6, abs=1e-9)


def test_thompson_sampling_falls_back_to_the_least_violation():
    from parabolt.optimizers.published.cts import best_sampled

    f = np.array([0.1, 0.5, 0.4, 0.9])
    assert best_sampled(f, np.array([-0.1, -0.2, 0.0, 0.1])) == 1
    assert best_sampled(f, np.array([0.3, 0.2, 0.1, 0.4])) == 2


def test_thompson_sampling_draws_each_candidate_as_often_as_it_is_the_best():
    """Shares of the choices against the shares among plain Gaussian samples (chi-square)."""
    space = parabolt.load_problem("pco32").space
    small = parabolt.SearchSpace(space.instance, space.encoded[::63][:6])
    optimizer = parabolt.make_optimizer("cts", small, seed=0, repeats="allow")
    for i, throughput in enumerate((0.30, 0.28, 0.33)):
        optimizer.tell(small.candidates[i], Outcome.ok(throughput, memory_margin=-0.4 + 0.15 * i))
    surrogate = optimizer.surrogate()
    rows = np.arange(6)
    chosen = np.bincount([optimizer._choose(surrogate, rows) for _ in range(2000)], minlength=6)
    rng, X = np.random.default_rng(1), surrogate.candidates
    f, c = (
        rng.multivariate_normal(gp.predict(X)[0], gp.covariance(X, X), 20_000)
        for gp in (surrogate.objective.gp, surrogate.constraint.gp)
    )
    best = np.where((c <= 0).any(1), np.where(c <= 0, f, -np.inf).argmax(1), c.argmin(1))
    share = np.bincount(best, minlength=6) / 20_000
    error = np.sqrt(share * (1 - share) / 2000 * 1.1 + 1e-6)
    assert (np.abs(chosen / 2000 - share) / error).max() < 4.5
