"""Exact Gaussian-process posteriors for few observations and many candidates.

Symbols and shapes (all float64), here and in `gp_fit`:

    n, N, d   observations, prediction points, inputs
    X         (n, d)  inputs, scaled to the unit cube by the caller
    y         (n,)    targets in their own unit; z = (y - shift) / scale is standardised
    l         (d,)    ARD lengthscales
    s         ()      variance of the observation noise, in the unit of z
    m         (n,)    prior mean, in the unit of z: a constant, or a `PriorMean` at theta (k,)
    K         (n, n)  kernel matrix k(X, X), unit variance
    A         (n, n)  K + s I
    L         (n, n)  lower Cholesky factor of A
    a         (n,)    A^-1 (z - m)
    V         (n, N)  L^-1 k(X, .)

Equations are those of Rasmussen & Williams (2006), chapter 2. Predictions go in blocks, so a
million candidates need no more memory than a few vectors of that length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from parabolt.optimizers.gp.kernels import KernelName, kernel_matrix

if TYPE_CHECKING:
    from collections.abc import Iterator

    from parabolt.optimizers.gp.prior_mean import PriorMean
    from parabolt.outcome import FloatArray

#: Log-normal prior of the lengthscales: location sqrt(2) + log(d)/2, scale sqrt(3).
LENGTHSCALE_LOC, LENGTHSCALE_SCALE = math.sqrt(2.0), math.sqrt(3.0)
#: Log-normal prior of the noise variance.
NOISE_LOC, NOISE_SCALE = -4.0, 1.0
#: Least posterior variance, as a share of the prior's; below it, it is rounding.
MIN_VARIANCE = 1e-12

_BLOCK_CELLS = 1 << 17  # a block stays in the cache of a core


@dataclass(frozen=True)
class Hyperparameters:
    """Parameters of kernel, noise and mean.

    Attributes:
        lengthscales: l (d,).
        noise: s, variance.
        mean: Constant prior mean; unused where there is a `PriorMean`.
        theta: Parameters (k,) of the `PriorMean`.
    """

    lengthscales: FloatArray
    noise: float
    mean: float = 0.0
    theta: FloatArray = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def prior_mode(cls, d: int) -> Hyperparameters:
        """The modes of the priors: where BoTorch starts a fit."""
        mode = math.exp(LENGTHSCALE_LOC + 0.5 * math.log(max(d, 1)) - LENGTHSCALE_SCALE**2)
        return cls(np.full(d, mode), math.exp(NOISE_LOC - NOISE_SCALE**2))


@dataclass(frozen=True)
class Standardization:
    """An affine map that gives targets mean 0 and standard deviation 1 (ddof 1, as BoTorch).

    Attributes:
        shift: Mean of the targets.
        scale: Their standard deviation; 1 where there is one target, or where that is rounding.
    """

    shift: float
    scale: float

    @classmethod
    def of(cls, y: FloatArray) -> Standardization:
        """The map that standardises y (n,)."""
        scale = float(y.std(ddof=1)) if len(y) > 1 else 1.0
        return cls(float(y.mean()), scale if scale > 1e-8 * np.abs(y).max() else 1.0)

    def apply(self, y: FloatArray) -> FloatArray:
        """Standardised y, any shape."""
        return (y - self.shift) / self.scale


class GaussianProcess:
    """A posterior at fixed hyper-parameters, in the unit of the targets.

    Args:
        X: Inputs (n, d), n >= 1.
        y: Targets (n,).
        hyper: Hyper-parameters, in standardised units.
        standardization: Map of the targets; by default that of `y`.
        kernel: Name of the kernel.
        prior_mean: Parametric prior mean, in the unit of the targets; a constant without it.

    Raises:
        LinAlgError: If the kernel matrix isn't positive definite in floating point.
    """

    def __init__(
        self,
        X: FloatArray,
        y: FloatArray,
        hyper: Hyperparameters,
        standardization: Standardization | None = None,
        *,
        kernel: KernelName = "rbf",
        prior_mean: PriorMean | None = None,
    ) -> None:
        self.X, self.y, self.hyper = X, y, hyper
        self.standardization = standardization or Standardization.of(y)
        self.kernel, self.prior_mean = kernel, prior_mean
        A = self.cross(X)
        A.flat[:: len(X) + 1] = 1.0 + hyper.noise
        self._set(cholesky(A, lower=True))

    def _set(self, L: FloatArray) -> None:
        self._L = L
        self._residual = self.standardization.apply(self.y) - self.mean_at(self.X)
        self._a = self.solve(self._residual)

    @property
    def residual(self) -> FloatArray:
        """Z - m (n,)."""
        return self._residual

    @property
    def noise_variance(self) -> float:
        """Variance of the observation noise, in the squared unit of the targets."""
        return self.hyper.noise * self.standardization.scale**2

    def mean_at(self, X: FloatArray) -> FloatArray:
        """Prior mean (N,) at X (N, d), in standardised units."""
        if self.prior_mean is None:
            return np.full(len(X), self.hyper.mean)
        value = self.prior_mean.value(self.prior_mean.features(X), self.hyper.theta)
        return self.standardization.apply(value)

    def cross(self, X: FloatArray) -> FloatArray:
        """Prior covariance (N, n) between X (N, d) and the observations, in standardised units."""
        return kernel_matrix(self.kernel, X, self.X, self.hyper.lengthscales)

    def solve(self, B: FloatArray) -> FloatArray:
        """A^-1 B for B (n,) or (n, k)."""
        return np.asarray(cho_solve((self._L, True), B, check_finite=False))

    def whitened(self, X: FloatArray) -> FloatArray:
        """V (n, N) for X (N, d): the posterior covariance is k(X, X') - V' V."""
        return self._half_solve(self.cross(X).T)

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and standard deviation (N,) of the latent function at X (N, d)."""
        mean, variance = np.empty(len(X)), np.empty(len(X))
        for block in self.blocks(len(X)):
            K = self.cross(X[block])
            mean[block] = self.mean_at(X[block]) + K @ self._a
            V = self._half_solve(K.T)
            variance[block] = np.maximum(1.0 - np.einsum("ij,ij->j", V, V), MIN_VARIANCE)
        shift, scale = self.standardization.shift, self.standardization.scale
        return shift + scale * mean, scale * np.sqrt(variance)

    def covariance(self, X1: FloatArray, X2: FloatArray) -> FloatArray:
        """Posterior covariance (N1, N2) of the latent function, in the targets' unit squared."""
        K = kernel_matrix(self.kernel, X1, X2, self.hyper.lengthscales)
        K -= self.whitened(X1).T @ self.whitened(X2)
        K *= self.standardization.scale**2
        return K

    def condition_on(self, X: FloatArray, y: FloatArray) -> GaussianProcess:
        """The posterior after further targets y (k,) at X (k, d), hyper-parameters unchanged.

        The Cholesky factor grows by k rows, at a cost of n^2 k in place of (n + k)^3 / 3.
        """
        n, k = len(self.X), len(X)
        B = self._half_solve(self.cross(X).T)
        corner = kernel_matrix(self.kernel, X, X, self.hyper.lengthscales) - B.T @ B
        corner.flat[:: k + 1] += self.hyper.noise
        L = np.zeros((n + k, n + k))
        L[:n, :n], L[n:, :n], L[n:, n:] = self._L, B.T, cholesky(corner, lower=True)
        grown = object.__new__(GaussianProcess)
        grown.X, grown.y = np.vstack([self.X, X]), np.append(self.y, y)
        grown.hyper, grown.standardization = self.hyper, self.standardization
        grown.kernel, grown.prior_mean = self.kernel, self.prior_mean
        grown._set(L)
        return grown

    def blocks(self, N: int) -> Iterator[slice]:
        """Slices of N prediction points, small enough for one kernel matrix each."""
        size = max(1, _BLOCK_CELLS // len(self.X))
        return (slice(start, min(start + size, N)) for start in range(0, N, size))

    def _half_solve(self, B: FloatArray) -> FloatArray:
        return np.asarray(
            solve_triangular(self._L, B, lower=True, overwrite_b=True, check_finite=False)
        )
