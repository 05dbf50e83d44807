"""Noisy EI against BoTorch's, and against EI where nothing is noisy."""

import numpy as np
import pytest
import torch
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.acquisition.objective import GenericMCObjective
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.transforms import Standardize
from botorch.sampling.normal import SobolQMCNormalSampler

import parabolt
from parabolt.optimizers.published.noisy_improvement import log_noisy_constrained_ei


@pytest.fixture(scope="module")
def case():
    problem = parabolt.ImputedProblem(parabolt.load_problem("pco64"))
    optimizer = parabolt.make_optimizer("lognei", problem.space, seed=0)
    rng = np.random.default_rng(3)
    for row in rng.choice(len(problem.space), 25, replace=False):
        configuration = problem.space.candidates[row]
        optimizer.tell(configuration, problem.evaluate(configuration))
    surrogate = optimizer.surrogate()
    history = optimizer.history
    baseline = surrogate.candidates[np.unique(history.rows[history.is_feasible])]
    return surrogate, baseline


def botorch_model(gp):
    model = SingleTaskGP(
        torch.tensor(gp.X), torch.tensor(gp.y)[:, None], outcome_transform=Standardize(m=1)
    ).double()
    model.covar_module.lengthscale = torch.tensor(gp.hyper.lengthscales)
    model.likelihood.noise = gp.hyper.noise
    model.mean_module.constant = torch.tensor(gp.hyper.mean, dtype=torch.double)
    return model


def test_is_botorchs_at_the_same_posteriors(case):
    """BoTorch samples the candidate too and smooths; with many samples and little smoothing both
    estimate the same expectation. Compared where it is not negligible."""
    surrogate, baseline = case
    gps = surrogate.objective.gp, surrogate.constraint.gp
    ours = log_noisy_constrained_ei(
        *gps, baseline, surrogate.candidates, 2048, np.random.default_rng(0)
    )
    top = np.argsort(-ours)[:25]
    acquisition = qLogNoisyExpectedImprovement(
        model=ModelListGP(*[botorch_model(gp) for gp in gps]),
        X_baseline=torch.tensor(baseline),
        sampler=SobolQMCNormalSampler(sample_shape=torch.Size([8192]), seed=0),
        objective=GenericMCObjective(lambda Z, X=None: Z[..., 0]),
        constraints=[lambda Z: Z[..., 1]],
        eta=1e-5,
        fat=False,
        tau_relu=1e-8,
        tau_max=1e-6,
        prune_baseline=False,
    )
    with torch.no_grad():
        theirs = acquisition(torch.tensor(surrogate.candidates[top])[:, None]).numpy()
    assert ours[top] == pytest.approx(theirs, abs=0.1)
    assert np.mean(ours[top] - theirs) == pytest.approx(0.0, abs=0.03)


def test_is_ei_over_the_sampled_best_written_out(case):
    """One sample per line of the definition: condition by refitting on the sampled values."""
    surrogate, baseline = case
    objective = surrogate.objective.gp
    X = surrogate.candidates[::40]
    n = 64
    ours = log_noisy_constrained_ei(objective, None, baseline, X, n, np.random.default_rng(4))
    from scipy.stats import norm, qmc

    points = qmc.Sobol(2 * len(baseline), seed=np.random.default_rng(4)).random(n)
    normals = norm.ppf(points[:, : len(baseline)])
    C = objective.covariance(baseline, baseline)
    root = np.linalg.cholesky(C + 1e-10 * C.diagonal().max() * np.eye(len(C)))
    mean_b, mean_x = objective.predict(baseline)[0], objective.predict(X)[0]
    gain = np.linalg.solve(root @ root.T, objective.covariance(baseline, X)).T
    variance = objective.predict(X)[1] ** 2 - np.einsum(
        "ij,ji->i", gain, objective.covariance(baseline, X)
    )
    std = np.sqrt(np.maximum(variance, 1e-9 * objective.standardization.scale**2))
    total = np.zeros(len(X))
    for z in normals:
        f = mean_b + root @ z
        mean = mean_x + gain @ (f - mean_b)
        u = (mean - f.max()) / std
        total += std * (u * norm.cdf(u) + norm.pdf(u))
    seen = total / n > 1e-10
    assert seen.sum() > 5
    assert ours[seen] == pytest.approx(np.log(total[seen] / n), rel=1e-4, abs=1e-4)


def test_certain_observations_give_plain_ei():
    """Where noise is nil, the best value is known and noisy EI is EI."""
    from parabolt.optimizers.gp.acquisition import log_expected_improvement
    from parabolt.optimizers.gp.gp import GaussianProcess, Hyperparameters

    rng = np.random.default_rng(0)
    X, y = rng.random((8, 2)), rng.random(8)
    gp = GaussianProcess(X, y, Hyperparameters(np.full(2, 0.3), 1e-9))
    points = rng.random((30, 2))
    ours = log_noisy_constrained_ei(gp, None, X, points, 128, rng)
    mean, std = gp.predict(points)
    expected = log_expected_improvement(mean, std, y.max())
    certain = expected > -12
    assert ours[certain] == pytest.approx(expected[certain], abs=0.02)
