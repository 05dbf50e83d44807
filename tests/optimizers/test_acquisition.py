import numpy as np
import pytest
import torch
from botorch.acquisition.analytic import LogConstrainedExpectedImprovement, LogExpectedImprovement
from botorch.utils.testing import MockModel, MockPosterior
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad, trapezoid
from scipy.stats import t

from parabolt.optimizers.gp.acquisition import (
    log_expected_improvement,
    log_expected_improvement_t,
    log_probability_feasible,
)

finite = st.floats(-1e3, 1e3)
positive = st.floats(1e-3, 1e3)


def botorch_log_ei(mean, std, best):
    posterior = MockPosterior(
        mean=torch.tensor([[mean]]),
        variance=torch.tensor([[std**2]]),
    )
    acquisition = LogExpectedImprovement(MockModel(posterior), best_f=best)
    return acquisition(torch.zeros(1, 1)).item()


@given(mean=finite, std=positive, best=finite)
def test_log_ei_is_botorchs(mean, std, best):
    ours = log_expected_improvement(np.array([mean]), np.array([std]), best)[0]
    assert ours == pytest.approx(botorch_log_ei(mean, std, best), rel=1e-8, abs=1e-8)


def test_log_ei_against_numerical_integration():
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=20), rng.uniform(0.1, 2.0, 20)
    z = np.linspace(-12, 12, 400_001)
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    for m, s in zip(mean, std, strict=True):
        expected = trapezoid(np.maximum(m + s * z - 0.5, 0.0) * density, z)
        ours = log_expected_improvement(np.array([m]), np.array([s]), 0.5)[0]
        assert np.exp(ours) == pytest.approx(expected, rel=1e-6)


def test_log_ei_is_smooth_and_rising_over_all_its_branches():
    u = -np.logspace(6, -3, 20_000)
    values = log_expected_improvement(u, np.ones_like(u), 0.0)
    assert np.isfinite(values).all()
    assert (np.diff(values) > 0).all()
    around = np.array([-1.0, -1.0 + 1e-12, -1e3, -1e3 - 1e-9])
    edges = log_expected_improvement(around, np.ones(4), 0.0)
    assert edges[0] == pytest.approx(edges[1], rel=1e-10)
    assert edges[2] == pytest.approx(edges[3], rel=1e-10)


@pytest.mark.parametrize("dof", [3.0, 8.0])
def test_log_ei_of_students_t_against_numerical_integration(dof):
    for mean, std in [(0.3, 0.2), (0.5, 1.0), (-4.0, 0.5), (-60.0, 0.1), (2.0, 0.01)]:
        tail = quad(lambda z: t.sf(z, dof), (0.5 - mean) / std, np.inf, epsabs=0.0, limit=500)[0]
        ours = log_expected_improvement_t(np.array([mean]), np.array([std]), 0.5, dof=dof)[0]
        assert ours == pytest.approx(np.log(std * tail), rel=1e-6)


def test_log_ei_of_students_t_is_smooth_and_tends_to_the_gaussian():
    u = np.append(-np.logspace(7, -3, 20_000), np.linspace(0.0, 50.0, 1000))
    values = log_expected_improvement_t(u, np.ones_like(u), 0.0, dof=8.0)
    assert np.isfinite(values).all()
    assert (np.diff(values) > 0).all()
    near = u[u > -3]
    assert log_expected_improvement_t(near, np.ones_like(near), 0.0, dof=1e6) == pytest.approx(
        log_expected_improvement(near, np.ones_like(near), 0.0), abs=1e-4
    )


@given(mean=st.floats(-30, 30), std=positive)
def test_log_probability_feasible_is_the_normal_distribution(mean, std):
    from scipy.stats import norm

    ours = log_probability_feasible(np.array([mean]), np.array([std]))[0]
    assert ours == pytest.approx(norm.logcdf(0.0, loc=mean, scale=std), rel=1e-10)


def test_constrained_log_ei_is_botorchs():
    rng = np.random.default_rng(1)
    mean, std = rng.normal(size=(6, 2)), rng.uniform(0.2, 1.5, (6, 2))
    for m, s in zip(mean, std, strict=True):
        posterior = MockPosterior(mean=torch.tensor(m)[None], variance=torch.tensor(s**2)[None])
        acquisition = LogConstrainedExpectedImprovement(
            MockModel(posterior),
            best_f=0.1,
            objective_index=0,
            constraints={1: (None, 0.0)},
        )
        expected = acquisition(torch.zeros(1, 1)).item()
        ours = (
            log_expected_improvement(m[:1], s[:1], 0.1) + log_probability_feasible(m[1:], s[1:])
        )[0]
        assert ours == pytest.approx(expected, rel=1e-8)
