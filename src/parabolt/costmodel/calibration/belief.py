"""Beliefs about coefficients: Gaussian, with the update by data as a Laplace approximation.

Symbols: k coefficients, n data, z (k,) their logarithms, J (n, k) the derivatives of the predicted
logarithms by z, sigma the standard deviation of a datum's logarithm about the model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve

if TYPE_CHECKING:
    from collections.abc import Callable

    from parabolt.outcome import FloatArray

#: Degrees of freedom of the Student t that data scatter with: robust against the odd slow run.
_TAILS = 4.0
#: How many data the prior guess of sigma is worth.
_SIGMA_WEIGHT = 10.0
#: A Student t with these tails has its central 90 % where a normal 1.3 times as wide has it.
_NORMAL_WIDTH = 1.296
_MAX_STEPS, _MAX_STEP, _TOLERANCE = 40, 1.0, 1e-5


@dataclass(frozen=True, eq=False)
class CoefficientBelief:
    """A Gaussian over coefficients (or their logarithms), and the scatter of data about the model.

    Attributes:
        names: Names of the k coefficients.
        mean: (k,).
        covariance: (k, k), symmetric and positive definite.
        sigma: Scale of the Student t (4 degrees of freedom) of a datum's logarithm about the model,
            model error included.
    """

    names: tuple[str, ...]
    mean: FloatArray
    covariance: FloatArray
    sigma: float

    def variance(self, jacobian: FloatArray) -> FloatArray:
        """Variance (n,) of a prediction with derivatives `jacobian` (n, k), scatter left out."""
        variance: FloatArray = np.einsum("nk,kl,nl->n", jacobian, self.covariance, jacobian)
        return variance

    @property
    def scatter(self) -> float:
        """Standard deviation of the normal with the same central 90 % as data about the model."""
        return _NORMAL_WIDTH * self.sigma

    def widened(self, std: FloatArray) -> CoefficientBelief:
        """The belief with independent variances std^2, (k,), added."""
        return replace(self, covariance=self.covariance + np.diag(std**2))


@dataclass(frozen=True, eq=False)
class Residuals:
    """What a fit needs of the data at some z.

    Attributes:
        values: Residuals (n,) of measured logarithms.
        jacobian: (n, k).
        gradient: Gradient (k,) of what isn't a residual, such as the log-likelihood of censored
            data; zeros without.
        curvature: Its negated second derivatives (k, k); zeros without.
        loss: Its negated log-likelihood.
    """

    values: FloatArray
    jacobian: FloatArray
    gradient: FloatArray
    curvature: FloatArray
    loss: float


def update(
    belief: CoefficientBelief, residuals: Callable[[FloatArray, float], Residuals]
) -> CoefficientBelief:
    """The belief after data: the mode, and the inverse curvature there.

    Levenberg-Marquardt on the Student-t loss with the Gaussian prior; sigma is then re-estimated
    with its prior, over the data less the coefficients that they determined, and the fit repeated.

    Args:
        belief: Prior.
        residuals: From z (k,) and sigma to `Residuals`.

    Returns:
        Posterior; the prior itself where there are no data.
    """
    precision = _inverse(belief.covariance)
    z, sigma = belief.mean, belief.sigma
    curvature = precision
    for _ in range(3):
        z, curvature, at_mode = _mode(belief.mean, precision, z, sigma, residuals)
        weights = _weights(at_mode.values, sigma)
        total = _SIGMA_WEIGHT * belief.sigma**2 + (weights * at_mode.values**2).sum()
        n_fitted = len(z) - float(np.trace(np.linalg.solve(curvature, precision)))
        n_free = max(len(at_mode.values) - n_fitted, 0.0)
        estimate = float(np.sqrt(total / (_SIGMA_WEIGHT + n_free)))
        if abs(np.log(estimate / sigma)) < 0.02:
            break
        sigma = estimate
    return replace(belief, mean=z, covariance=_inverse(curvature), sigma=sigma)


def _inverse(matrix: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


def _mode(
    mean: FloatArray,
    precision: FloatArray,
    z: FloatArray,
    sigma: float,
    residuals: Callable[[FloatArray, float], Residuals],
) -> tuple[FloatArray, FloatArray, Residuals]:
    damping = 1e-3
    at_z = residuals(z, sigma)
    loss = _loss(z - mean, precision, sigma, at_z)
    curvature, gradient = _quadratic(z - mean, precision, sigma, at_z)
    for _ in range(_MAX_STEPS):
        damped = curvature + damping * np.diag(np.diag(curvature))
        step = cho_solve(cho_factor(damped), gradient)
        step *= min(1.0, _MAX_STEP / max(float(np.abs(step).max()), 1e-300))
        tried = residuals(z + step, sigma)
        tried_loss = _loss(z + step - mean, precision, sigma, tried)
        if tried_loss > loss:
            damping *= 5.0
            if damping > 1e8:
                break
            continue
        gain, z, at_z, loss = loss - tried_loss, z + step, tried, tried_loss
        damping = max(damping / 5.0, 1e-9)
        curvature, gradient = _quadratic(z - mean, precision, sigma, at_z)
        if gain < _TOLERANCE * (1.0 + abs(loss)):
            break
    return z, curvature, at_z


def _weights(values: FloatArray, sigma: float) -> FloatArray:
    """Weights of the Student t: the expectation-maximisation form of its loss."""
    weights: FloatArray = (_TAILS + 1.0) / (_TAILS + (values / sigma) ** 2)
    return weights


def _loss(offset: FloatArray, precision: FloatArray, sigma: float, at_z: Residuals) -> float:
    squares = (at_z.values / sigma) ** 2
    scatter = 0.5 * (_TAILS + 1.0) * np.log1p(squares / _TAILS).sum()
    return float(scatter + 0.5 * offset @ precision @ offset + at_z.loss)


def _quadratic(
    offset: FloatArray, precision: FloatArray, sigma: float, at_z: Residuals
) -> tuple[FloatArray, FloatArray]:
    weighted = at_z.jacobian * (_weights(at_z.values, sigma) / sigma**2)[:, None]
    curvature = weighted.T @ at_z.jacobian + precision + at_z.curvature
    gradient = weighted.T @ at_z.values - precision @ offset + at_z.gradient
    return curvature, gradient
