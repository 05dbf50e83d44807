"""Fits a Gaussian process: maximum a posteriori by SLSQP with analytic gradients.

Symbols as in `gp`. Model and priors are BoTorch's `SingleTaskGP` defaults: log-normal priors on
lengthscales (dimension-scaled; Hvarfner et al. 2024) and noise, and standardised targets.
Hyper-parameters maximise the log posterior density

    log N(z | m, A) + sum log p(l) + log p(s) + log p(theta)   (Rasmussen & Williams 2006, eq. 2.30)

with the gradient of their eq. 5.9. A constant mean is profiled out: at its optimum
m = (1' A^-1 z) / (1' A^-1 1), so the gradient in the other parameters is unchanged. The parameters
theta of a parametric mean are learned with the rest; their gradient is a' dm/dtheta.

The density has several local maxima, and which one a search ends in must not depend on rounding,
which differs between processors. SLSQP keeps a dense estimate of the curvature, and its steps stay
near: none of 452 fits from runs on pco64 moved by more than 1e-8 when the targets were changed by
1e-14 of themselves. L-BFGS-B, which BoTorch uses, tries far points along the way: 11 of the 452
fits moved by more than 1e-6, one of them to another maximum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError, cho_solve
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.optimize import minimize

from parabolt.optimizers.gp.gp import (
    LENGTHSCALE_LOC,
    LENGTHSCALE_SCALE,
    NOISE_LOC,
    NOISE_SCALE,
    GaussianProcess,
    Hyperparameters,
    Standardization,
)
from parabolt.optimizers.gp.kernels import KERNELS, KernelName, squared_differences

if TYPE_CHECKING:
    from parabolt.optimizers.deadline import Deadline
    from parabolt.optimizers.gp.prior_mean import PriorMean
    from parabolt.outcome import FloatArray

MIN_LENGTHSCALE = 2.5e-2
MIN_NOISE = 1e-4

#: The first step of a search is the gradient of the log density per observation times this, chosen
#: for few evaluations: 24 to 28 a fit on pco32 and pco64.
_FIRST_STEP = 5.0
#: A search ends when a step changes the density per observation, times `_FIRST_STEP`, by less.
_TOLERANCE = 1e-11

#: What stands for the density's negative where the kernel matrix is singular.
_SINGULAR = 1e10
_MAX_LOG = 12.0  # beyond e^12 lengthscales and noise are all the same, theta is out of its prior
_LOG_2PI = math.log(2.0 * math.pi)


@dataclass(frozen=True)
class GPOptions:
    """What a fit is free in.

    Attributes:
        kernel: Name of the kernel.
        min_lengthscales: Lower bounds (d,) of the lengthscales; `MIN_LENGTHSCALE` without them.
        prior_mean: Parametric prior mean; a constant without it.
    """

    kernel: KernelName = "rbf"
    min_lengthscales: FloatArray | None = None
    prior_mean: PriorMean | None = None


class LogPosterior:
    """The log posterior density of the hyper-parameters, with its gradient.

    Parameters are (log l, log s, theta), of length d + 1 + k.

    Args:
        X: Inputs (n, d).
        z: Standardised targets (n,).
        kernel: Name of the kernel.
        prior_mean: Parametric prior mean.
        standardization: Map to standardised units, which a parametric mean needs.
    """

    def __init__(
        self,
        X: FloatArray,
        z: FloatArray,
        *,
        kernel: KernelName = "rbf",
        prior_mean: PriorMean | None = None,
        standardization: Standardization | None = None,
    ) -> None:
        n, d = X.shape
        self.n, self.d = n, d
        self._kernel = KERNELS[kernel]
        differences = squared_differences(X)
        self._differences = differences.reshape(d, n * n)
        # dpotri fills one triangle only, so each pair is counted there, with weight 2 x 1/2.
        self._upper = (differences * np.triu(np.ones((n, n)), 1)).reshape(d, n * n)
        self._targets = np.stack([z, np.ones(n)], axis=1)
        self._mean = prior_mean
        if prior_mean is not None:
            self._standardization = standardization or Standardization(0.0, 1.0)
            self._features = prior_mean.features(X)
            y = self._standardization.shift + self._standardization.scale * z
            self.theta_loc = prior_mean.initial(self._features, y)
        else:
            self.theta_loc = np.zeros(0)

    def marginal_likelihood(self, hyper: Hyperparameters) -> tuple[float, FloatArray]:
        """Log marginal likelihood at a constant mean, and its gradient.

        Returns:
            Value, and the gradient (d + 2,) with respect to lengthscales, noise and mean.

        Raises:
            LinAlgError: If A isn't positive definite in floating point.
        """
        residual = self._targets[:, 0] - hyper.mean
        value, gradient, a, _ = self._evaluate(hyper.lengthscales, hyper.noise, residual)
        return value, np.append(gradient, a.sum())

    def negative(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """What a fit minimises: minus the log posterior density per observation.

        Args:
            parameters: (log l, log s, theta), (d + 1 + k,).

        Returns:
            Value, and the gradient (d + 1 + k,).
        """
        logs, theta = parameters[: self.d + 1], parameters[self.d + 1 :]
        positive = np.exp(logs)
        residual, jacobian = self._residual(theta)
        try:
            value, gradient, a, _ = self._evaluate(positive[:-1], positive[-1], residual)
        except LinAlgError:
            return _SINGULAR, np.zeros_like(parameters)  # the line search turns back from here
        log_prior, d_log_prior = _log_prior(logs)
        d_parameters = gradient * positive + d_log_prior
        if self._mean is not None:
            u = (theta - self.theta_loc) / self._mean.theta_scale
            log_prior -= 0.5 * float(u @ u)
            d_parameters = np.append(d_parameters, a @ jacobian - u / self._mean.theta_scale)
        return -(value + log_prior) / self.n, -d_parameters / self.n

    def hyperparameters(self, parameters: FloatArray) -> Hyperparameters:
        """Values at `parameters`, with the constant mean that is best there."""
        positive, theta = np.exp(parameters[: self.d + 1]), parameters[self.d + 1 :]
        residual, _ = self._residual(theta)
        mean = self._evaluate(positive[:-1], positive[-1], residual)[3]
        return Hyperparameters(positive[:-1], float(positive[-1]), mean, theta.copy())

    def _residual(self, theta: FloatArray) -> tuple[FloatArray | None, FloatArray]:
        """Z - m (n,), or None where a constant is to be profiled out; and dm/dtheta (n, k)."""
        if self._mean is None:
            return None, np.zeros((self.n, 0))
        value, jacobian = self._mean.value_and_jacobian(self._features, theta)
        z = self._targets[:, 0]
        return z - self._standardization.apply(value), jacobian / self._standardization.scale

    def _evaluate(
        self, lengthscales: FloatArray, noise: float, residual: FloatArray | None
    ) -> tuple[float, FloatArray, FloatArray, float]:
        """Log likelihood, its gradient (d + 1,) in (l, s), a (n,), and the constant mean."""
        n = self.n
        weights = 1.0 / lengthscales**2
        K, slope = self._kernel(weights @ self._differences)
        A = K.reshape(n, n)
        A.flat[:: n + 1] += noise
        L, info = dpotrf(A.T, lower=1, overwrite_a=1, clean=0)
        if info != 0:
            raise LinAlgError("kernel matrix is not positive definite")
        mean = 0.0
        if residual is None:
            solved = cho_solve((L, True), self._targets, check_finite=False)
            mean = float(solved[:, 0].sum() / solved[:, 1].sum())
            a = solved[:, 0] - mean * solved[:, 1]
            residual = self._targets[:, 0] - mean
        else:
            a = cho_solve((L, True), residual, check_finite=False)
        log_determinant = 2.0 * np.log(L.diagonal()).sum()
        value = -0.5 * (residual @ a + log_determinant + n * _LOG_2PI)
        W = np.outer(a, a) - dpotri(L, lower=1, overwrite_c=1)[0].T  # its upper triangle is valid
        d_noise = 0.5 * W.trace()
        sums = self._upper @ (W.ravel() * slope)
        return float(value), np.append(sums * (-2.0 * weights / lengthscales), d_noise), a, mean


def _log_prior(logs: FloatArray) -> tuple[float, FloatArray]:
    """Log prior density of l and s at their logarithms (d + 1,), and its gradient in them."""
    d = len(logs) - 1
    loc = np.full(d + 1, LENGTHSCALE_LOC + 0.5 * math.log(max(d, 1)))
    scale = np.full(d + 1, LENGTHSCALE_SCALE)
    loc[-1], scale[-1] = NOISE_LOC, NOISE_SCALE
    u = (logs - loc) / scale
    value = (-logs - np.log(scale) - 0.5 * _LOG_2PI - 0.5 * u**2).sum()
    return float(value), -1.0 - u / scale


def fit_gp(
    X: FloatArray,
    y: FloatArray,
    options: GPOptions | None = None,
    *,
    deadline: Deadline | None = None,
    share: float = 1.0,
) -> tuple[GaussianProcess, bool]:
    """Fits the hyper-parameters to targets y (n,) at X (n, d), from the modes of the priors.

    Args:
        X: Inputs.
        y: Targets.
        options: Kernel, bounds and prior mean.
        deadline: When to stop with what there is.
        share: Share of the deadline's limit that this fit may use up.

    Returns:
        The posterior, and whether the fit succeeded. A fit fails where the search finds nothing
        better than the modes of the priors; then a parametric prior mean gives way to a constant,
        and without one the hyper-parameters are those modes, at which the noise keeps the kernel
        matrix well conditioned.
    """
    options = options or GPOptions()
    mean, standardization = options.prior_mean, Standardization.of(y)
    objective = LogPosterior(
        X,
        standardization.apply(y),
        kernel=options.kernel,
        prior_mean=mean,
        standardization=standardization,
    )
    parameters = _search(objective, options, deadline, share)
    if parameters is None and mean is not None:
        constant = GPOptions(options.kernel, options.min_lengthscales)
        return fit_gp(X, y, constant, deadline=deadline, share=share)[0], False
    found = _modes(objective, options) if parameters is None else parameters
    hyper = objective.hyperparameters(found)
    gp = GaussianProcess(X, y, hyper, standardization, kernel=options.kernel, prior_mean=mean)
    return gp, parameters is not None


def _search(
    objective: LogPosterior, options: GPOptions, deadline: Deadline | None, share: float
) -> FloatArray | None:
    """The best parameters (d + 1 + k,) on the way from the modes of the priors; None if the modes.

    Where the deadline ends the search, they are the best until then, be it the modes.
    """
    best = start = _modes(objective, options)
    least = objective.negative(start)[0]
    if not least < _SINGULAR:
        return None

    def scaled(parameters: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best, least
        if deadline is not None and deadline.is_over(share):
            raise StopIteration
        value, gradient = objective.negative(parameters)
        if value < least:
            best, least = parameters.copy(), value
        return _FIRST_STEP * value, _FIRST_STEP * gradient

    bounds = [(low, _MAX_LOG) for low in _lower_logs(objective.d, options)]
    bounds += [(loc - _MAX_LOG, loc + _MAX_LOG) for loc in objective.theta_loc]
    try:
        minimize(
            scaled,
            start,
            jac=True,
            method="SLSQP",
            bounds=bounds,
            options={"maxiter": 200, "ftol": _TOLERANCE},
        )
    except StopIteration:
        return best
    return None if best is start else best


def _modes(objective: LogPosterior, options: GPOptions) -> FloatArray:
    mode = Hyperparameters.prior_mode(objective.d)
    logs = np.log(np.append(mode.lengthscales, mode.noise))
    return np.append(np.maximum(logs, _lower_logs(objective.d, options)), objective.theta_loc)


def _lower_logs(d: int, options: GPOptions) -> FloatArray:
    floor = options.min_lengthscales
    lengthscales = np.full(d, MIN_LENGTHSCALE) if floor is None else floor
    return np.asarray(np.log(np.append(lengthscales, MIN_NOISE)))
