"""Exact Gaussian-process regression with analytic gradients, for small n and many candidates.

Symbols and shapes (all float64):

    n, N, d   observations, prediction points, inputs
    X         (n, d)  inputs, scaled to the unit cube by the caller
    y         (n,)    targets in their own unit; z = (y - shift) / scale is standardised
    l         (d,)    ARD lengthscales
    s         ()      variance of the observation noise, in the unit of z
    m         ()      constant prior mean, in the unit of z
    K         (n, n)  kernel matrix k(X, X), unit variance
    A         (n, n)  K + s I
    L         (n, n)  lower Cholesky factor of A
    a         (n,)    A^-1 (z - m)

Model and priors are BoTorch's `SingleTaskGP` defaults: RBF kernel of unit variance, log-normal
priors on lengthscales (dimension-scaled; Hvarfner et al. 2024) and noise, constant mean, and
standardised targets. Hyper-parameters maximise the log posterior density

    log N(z | m, A) + sum log p(l) + log p(s)        (Rasmussen & Williams 2006, eq. 2.30)

with the gradient of their eq. 5.9. The mean is profiled out: at its optimum
m = (1' A^-1 z) / (1' A^-1 1), so the gradient in the other parameters is unchanged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.optimize import minimize

if TYPE_CHECKING:
    from parabolt.outcome import FloatArray

MIN_LENGTHSCALE = 2.5e-2
MIN_NOISE = 1e-4
#: Log-normal prior of the lengthscales: location sqrt(2) + log(d)/2, scale sqrt(3).
LENGTHSCALE_LOC, LENGTHSCALE_SCALE = math.sqrt(2.0), math.sqrt(3.0)
#: Log-normal prior of the noise variance.
NOISE_LOC, NOISE_SCALE = -4.0, 1.0

_MAX_LOG = 12.0  # lengthscales and noise beyond e^12 are all the same to a unit cube
_LOG_2PI = math.log(2.0 * math.pi)


@dataclass(frozen=True)
class Hyperparameters:
    """Parameters of kernel, noise and mean.

    Attributes:
        lengthscales: l (d,).
        noise: s, variance.
        mean: m.
    """

    lengthscales: FloatArray
    noise: float
    mean: float = 0.0

    @classmethod
    def prior_mode(cls, d: int) -> Hyperparameters:
        """The modes of the priors: where BoTorch starts a fit."""
        mode = math.exp(LENGTHSCALE_LOC + 0.5 * math.log(d) - LENGTHSCALE_SCALE**2)
        return cls(np.full(d, mode), math.exp(NOISE_LOC - NOISE_SCALE**2))


def squared_differences(X: FloatArray) -> FloatArray:
    """Squared differences per input between all pairs of rows, (d, n, n)."""
    columns = X.T
    return (columns[:, :, None] - columns[:, None, :]) ** 2


def rbf_kernel(X1: FloatArray, X2: FloatArray, lengthscales: FloatArray) -> FloatArray:
    """RBF kernel exp(-|x1 - x2|^2_l / 2) between rows of X1 (n1, d) and X2 (n2, d): (n1, n2)."""
    A, B = X1 / lengthscales, X2 / lengthscales
    squares = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2.0 * A @ B.T
    K: FloatArray = np.exp(-0.5 * np.maximum(squares, 0.0))
    return K


class LogPosterior:
    """The log posterior density of the hyper-parameters, with its gradient.

    Args:
        X: Inputs (n, d).
        z: Standardised targets (n,).
    """

    def __init__(self, X: FloatArray, z: FloatArray) -> None:
        n, d = X.shape
        self.n, self.d = n, d
        differences = squared_differences(X)
        self._exponents = (-0.5 * differences).reshape(d, n * n)
        # dpotri fills one triangle only, so each pair is counted there, with weight 2 x 1/2.
        self._upper = (differences * np.triu(np.ones((n, n)), 1)).reshape(d, n * n)
        self._targets = np.stack([z, np.ones(n)], axis=1)

    def marginal_likelihood(self, hyper: Hyperparameters) -> tuple[float, FloatArray]:
        """Log marginal likelihood and its gradient.

        Returns:
            Value, and the gradient (d + 2,) with respect to lengthscales, noise and mean.

        Raises:
            LinAlgError: If A isn't positive definite in floating point.
        """
        value, gradient, _ = self._evaluate(hyper.lengthscales, hyper.noise, hyper.mean)
        return value, gradient

    def negative(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """What a fit minimises: minus the log posterior density per observation.

        Args:
            theta: Logarithms (d + 1,) of lengthscales and noise; the mean is profiled out.

        Returns:
            Value, and the gradient (d + 1,) with respect to `theta`.
        """
        positive = np.exp(theta)
        try:
            value, gradient, _ = self._evaluate(positive[:-1], positive[-1], None)
        except LinAlgError:
            return 1e10, np.zeros_like(theta)  # the line search turns back from here
        log_prior, d_log_prior = _log_prior(theta)
        d_theta = gradient[:-1] * positive + d_log_prior
        return -(value + log_prior) / self.n, -d_theta / self.n

    def hyperparameters(self, theta: FloatArray) -> Hyperparameters:
        """Parameters at `theta`, with the mean that is best there."""
        positive = np.exp(theta)
        mean = self._evaluate(positive[:-1], positive[-1], None)[2]
        return Hyperparameters(positive[:-1], float(positive[-1]), mean)

    def _evaluate(
        self, lengthscales: FloatArray, noise: float, mean: float | None
    ) -> tuple[float, FloatArray, float]:
        n = self.n
        weights = 1.0 / lengthscales**2
        K = np.exp(weights @ self._exponents).reshape(n, n)
        A = K.copy()
        A.flat[:: n + 1] += noise
        L, info = dpotrf(A.T, lower=1, overwrite_a=1, clean=0)
        if info != 0:
            raise LinAlgError("kernel matrix is not positive definite")
        solved = cho_solve((L, True), self._targets, check_finite=False)
        if mean is None:
            mean = float(solved[:, 0].sum() / solved[:, 1].sum())
        a = solved[:, 0] - mean * solved[:, 1]
        residual = self._targets[:, 0] - mean
        log_determinant = 2.0 * np.log(L.diagonal()).sum()
        value = -0.5 * (residual @ a + log_determinant + n * _LOG_2PI)
        W = np.outer(a, a) - dpotri(L, lower=1, overwrite_c=1)[0].T  # its upper triangle is valid
        d_noise = 0.5 * W.trace()
        W *= K
        d_lengthscales = (self._upper @ W.ravel()) * weights / lengthscales
        return float(value), np.concatenate([d_lengthscales, [d_noise, a.sum()]]), mean


def _log_prior(theta: FloatArray) -> tuple[float, FloatArray]:
    """Log prior density of the parameters exp(theta), and its gradient in theta, (d + 1,)."""
    d = len(theta) - 1
    loc = np.full(d + 1, LENGTHSCALE_LOC + 0.5 * math.log(d))
    scale = np.full(d + 1, LENGTHSCALE_SCALE)
    loc[-1], scale[-1] = NOISE_LOC, NOISE_SCALE
    u = (theta - loc) / scale
    value = (-theta - np.log(scale) - 0.5 * _LOG_2PI - 0.5 * u**2).sum()
    return float(value), -1.0 - u / scale


@dataclass(frozen=True)
class Standardization:
    """An affine map that gives targets mean 0 and standard deviation 1 (ddof 1, as BoTorch).

    Attributes:
        shift: Mean of the targets.
        scale: Their standard deviation; 1 where that is zero or there is one target.
    """

    shift: float
    scale: float

    @classmethod
    def of(cls, y: FloatArray) -> Standardization:
        """The map that standardises y (n,)."""
        scale = float(y.std(ddof=1)) if len(y) > 1 else 1.0
        return cls(float(y.mean()), scale if scale >= 1e-8 else 1.0)


class GaussianProcess:
    """A posterior at fixed hyper-parameters, in the unit of the targets.

    Args:
        X: Inputs (n, d), n >= 1.
        y: Targets (n,).
        hyper: Hyper-parameters, in standardised units.
        standardization: Map of the targets; by default that of `y`.

    Raises:
        LinAlgError: If the kernel matrix isn't positive definite in floating point.
    """

    def __init__(
        self,
        X: FloatArray,
        y: FloatArray,
        hyper: Hyperparameters,
        standardization: Standardization | None = None,
    ) -> None:
        self.X, self.y, self.hyper = X, y, hyper
        self.standardization = standardization or Standardization.of(y)
        A = rbf_kernel(X, X, hyper.lengthscales)
        A.flat[:: len(X) + 1] = 1.0 + hyper.noise
        self._L = cholesky(A, lower=True)
        z = (y - self.standardization.shift) / self.standardization.scale
        self._a = cho_solve((self._L, True), z - hyper.mean)

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and standard deviation (N,) of the latent function at X (N, d)."""
        K = rbf_kernel(X, self.X, self.hyper.lengthscales)
        mean = self.hyper.mean + K @ self._a
        V = solve_triangular(self._L, K.T, lower=True, overwrite_b=True, check_finite=False)
        variance = np.maximum(1.0 - np.einsum("ij,ij->j", V, V), 1e-12)
        shift, scale = self.standardization.shift, self.standardization.scale
        return shift + scale * mean, scale * np.sqrt(variance)

    def condition_on(self, X: FloatArray, y: FloatArray) -> GaussianProcess:
        """The posterior after further targets y (k,) at X (k, d), hyper-parameters unchanged."""
        return GaussianProcess(
            np.vstack([self.X, X]), np.append(self.y, y), self.hyper, self.standardization
        )


def fit_gp(X: FloatArray, y: FloatArray) -> tuple[GaussianProcess, bool]:
    """Fits the hyper-parameters to targets y (n,) at X (n, d) by L-BFGS-B from the prior's mode.

    Returns:
        The posterior, and whether the fit succeeded. Where it did not, the hyper-parameters are
        the prior's mode, at which the noise keeps the kernel matrix well conditioned.
    """
    standardization = Standardization.of(y)
    objective = LogPosterior(X, (y - standardization.shift) / standardization.scale)
    mode = Hyperparameters.prior_mode(X.shape[1])
    start = np.log(np.append(mode.lengthscales, mode.noise))
    lower = np.log(np.append(np.full(X.shape[1], MIN_LENGTHSCALE), MIN_NOISE))
    result = minimize(
        objective.negative,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(low, _MAX_LOG) for low in lower],
        options={"maxiter": 200},
    )
    try:
        if np.isfinite(result.fun) and result.fun < objective.negative(start)[0] + 1e-9:
            hyper = objective.hyperparameters(result.x)
            return GaussianProcess(X, y, hyper, standardization), True
    except LinAlgError:
        pass
    hyper = objective.hyperparameters(start)
    return GaussianProcess(X, y, hyper, standardization), False
