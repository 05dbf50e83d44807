import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit

from parabolt.optimizers.physics.feasibility_model import _kernel, failure_probability

INPUTS = np.array([[0.0], [0.2], [1.0], [4.0], [8.0]])


def test_without_trials_it_is_the_cost_models_word():
    predicted = np.array([0.1, 0.5, 0.9, 0.01, 0.99])
    nothing = np.array([], dtype=int)
    ours = failure_probability(predicted, INPUTS, nothing, np.array([], dtype=bool))
    assert ours == pytest.approx(predicted)


def test_mode_is_that_of_a_general_optimizer():
    rng = np.random.default_rng(0)
    inputs = rng.uniform(0, 4, (30, 2))
    predicted = rng.uniform(0.05, 0.9, 30)
    at = rng.choice(30, 15, replace=False)
    failed = rng.random(15) < 0.5
    K = _kernel(inputs[at], inputs[at]) + 1e-9 * np.eye(15)
    offset = logit(predicted[at])

    def loss(f):
        eta = offset + f
        return 0.5 * f @ np.linalg.solve(K, f) + np.logaddexp(0, np.where(failed, -eta, eta)).sum()

    mode = minimize(loss, np.zeros(15), method="BFGS", options={"gtol": 1e-8}).x
    ours = failure_probability(predicted, inputs, at, failed)
    assert ours[at] == pytest.approx(expit(offset + mode), abs=1e-4)


def test_a_confident_prediction_outlives_a_neighbour_that_fits():
    predicted = np.array([0.01, 0.9999, 0.5, 0.5, 0.5])
    ours = failure_probability(predicted, INPUTS, np.array([0]), np.array([False]))
    assert ours[1] > 0.95


def test_failures_nearby_outweigh_a_wrong_prediction_and_fade_with_distance():
    predicted = np.full(5, 0.02)
    at = np.array([0, 0, 1, 1])
    ours = failure_probability(predicted, INPUTS, at, np.ones(4, dtype=bool))
    assert ours[0] > 0.5
    assert ours[0] > ours[2] > ours[3] >= ours[4]
    assert ours[4] < 0.3


def test_contradicting_repeats_are_no_trouble():
    ours = failure_probability(
        np.full(5, 0.3), INPUTS, np.array([2] * 6), np.array([True, False] * 3)
    )
    assert np.isfinite(ours).all()
    assert 0.2 < ours[2] < 0.6
