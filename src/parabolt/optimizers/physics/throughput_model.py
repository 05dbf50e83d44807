"""Log throughput as physics plus what physics misses: one Gaussian process, two sources of doubt.

Symbols: n observations, N candidates, k coefficients of the cost model.

    y (n,)      observed log throughput of timed runs
    z0, S       mean (k,) and covariance (k, k) of the log-coefficients before the trials
    m, J        log throughput the cost model predicts at z, and its derivatives (N, k)
    r           residual: Gaussian process with an RBF kernel of standard deviation s and
                lengthscale l over `structure_inputs`
    e           noise of a run's log throughput

The model y = m(z) + r + e is linear in z near its mode, so the prior covariance of log throughput
is J S J' + s^2 exp(-|x - x'|^2 / 2 l^2), and the posterior at all candidates is a Gaussian-process
regression (an iterated extended Kalman update; Bell & Cathey 1993). Where physics is right, few
trials settle z and s stays small: the model is as sharp as a parametric one. Where it is wrong, s
grows and the model is a plain Gaussian process over structure. s, l and the noise are the maximum a
posteriori on a grid.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular

from parabolt.costmodel.calibration.belief import CoefficientBelief
from parabolt.costmodel.terms.term import log_sum
from parabolt.optimizers.gp.kernels import kernel_matrix

if TYPE_CHECKING:
    from parabolt.outcome import FloatArray, IntArray

#: Grid of the noise of a run's mean log throughput, and its log-normal prior: mean step times of
#: repeated runs differ by a few tenths of a percent, on a busy cluster by more.
_NOISES = np.array([0.004, 0.008, 0.016, 0.032])
_NOISE_MEDIAN, _NOISE_LOG_SCALE = 0.004, 1.0
#: What a configuration has for itself alone, such as where its ranks land.
_OWN_LOG_STD = 0.002
#: Share of what is taken for noise, beyond that of repeated runs, that is a configuration's own
#: after all: the two can't be told apart where each was run once.
_OWN_SHARE = 0.5
#: Grid of the residual's standard deviation, and its log-normal prior: a calibrated cost model errs
#: by 3 to 8 %, and may err by anything.
_STDS = np.geomspace(0.02, 0.64, 6)
_STD_MEDIAN, _STD_LOG_SCALE = 0.06, 0.7
#: Grid of the lengthscale in units of a regime, and its prior.
_LENGTHSCALES = np.array([0.5, 1.0, 2.0])
_LENGTHSCALE_MEDIAN, _LENGTHSCALE_LOG_SCALE = 1.0, 0.5
#: Without physics: an unknown level, and rows that differ by some ten percent.
_FLAT_LOG_STD, _FLAT_RESIDUAL_STD = 5.0, 0.2
#: Linearisations per posterior.
_MODE_STEPS = 2


@dataclass(frozen=True)
class Residual:
    """Hyper-parameters of the residual.

    Attributes:
        std: Standard deviation of log throughput.
        lengthscale: In units of `structure_inputs`.
        noise: Standard deviation of the noise of a run's log throughput.
    """

    std: float = _STD_MEDIAN
    lengthscale: float = _LENGTHSCALE_MEDIAN
    noise: float = _NOISE_MEDIAN

    def kernel(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """Covariance (n, m) of the residual between inputs A (n, d) and B (m, d)."""
        lengthscales = np.full(A.shape[1], self.lengthscale)
        return self.std**2 * kernel_matrix("rbf", A, B, lengthscales)


@dataclass(frozen=True, eq=False)
class Posterior:
    """Posterior of log throughput at N candidates.

    Attributes:
        mean: (N,).
        std: (N,).
        best: The observed candidate with the largest mean; None without one.
        shared: Covariance (N,) with the best one.
    """

    mean: FloatArray
    std: FloatArray
    best: int | None
    shared: FloatArray

    def gain_std(self) -> FloatArray:
        """Standard deviation (N,) of a candidate's advantage over the best observed one.

        What the two have in common cancels: a candidate that differs from the best in an inert knob
        promises next to nothing, however uncertain both are.
        """
        if self.best is None:
            return self.std
        variance = self.std**2 + self.std[self.best] ** 2 - 2.0 * self.shared
        std: FloatArray = np.sqrt(np.maximum(variance, 1e-10))
        return std


class ThroughputModel:
    """Log throughput of all candidates: physics linearised at a point, and a residual.

    Args:
        features: Terms of the step time as specifications have them, seconds, (N, k).
        inputs: Inputs of the residual's kernel, (N, d).
        belief: Belief about the log-coefficients before the trials.
        std_median: Median of the residual's standard deviation before the trials.
        residual: Hyper-parameters of the residual; their medians by default.
        z: Log-coefficients at which physics is linearised, (k,); the belief's mean by default.
    """

    def __init__(
        self,
        features: FloatArray,
        inputs: FloatArray,
        belief: CoefficientBelief,
        *,
        std_median: float = _STD_MEDIAN,
        residual: Residual | None = None,
        z: FloatArray | None = None,
    ) -> None:
        self._features, self._inputs, self._belief = features, inputs, belief
        self._std_median = std_median
        self.residual = residual or Residual(std=std_median)
        self.z = belief.mean if z is None else z

    @classmethod
    def flat(cls, inputs: FloatArray) -> ThroughputModel:
        """The model that knows no physics: an unknown constant and a residual."""
        constant = CoefficientBelief(("constant",), np.zeros(1), _FLAT_LOG_STD**2 * np.eye(1), 1.0)
        return cls(np.ones((len(inputs), 1)), inputs, constant, std_median=_FLAT_RESIDUAL_STD)

    def fit(self, at: IntArray, y: FloatArray) -> ThroughputModel:
        """The model linearised at the mode of z, with the most probable residual.

        The search for the residual starts at this model's, for z at the belief's mean.

        Args:
            at: Candidates that were observed, (n,); repeats are allowed.
            y: Their log throughput, (n,).
        """
        model = self._with(self.residual, self._belief.mean)
        for _ in range(_MODE_STEPS if len(at) else 0):
            prior_mean, J = model._linearized(at)
            residual = model._best_residual(at, y - prior_mean, J)
            _, a = self._solved(at, y - prior_mean, J, residual)
            # The mode of z given the residual's covariance, where the next linearisation starts.
            model = self._with(residual, self._belief.mean + self._belief.covariance @ J.T @ a)
        return model

    def _with(self, residual: Residual, z: FloatArray) -> ThroughputModel:
        return ThroughputModel(
            self._features, self._inputs, self._belief,
            std_median=self._std_median, residual=residual, z=z,
        )  # fmt: skip

    def expected(self, mean: FloatArray, at: IntArray, y: FloatArray) -> FloatArray:
        """What a repeated run is expected to give, log throughput (N,).

        The posterior mean; that of an observed candidate moves towards its own observations as far
        as the noise is more than repeated runs have.

        Args:
            mean: Posterior mean given these observations, (N,).
            at: Candidates that were observed, (n,).
            y: Their log throughput, (n,).
        """
        share = _OWN_SHARE * (1.0 - (_NOISE_MEDIAN / self.residual.noise) ** 2)
        n_runs = np.bincount(at, minlength=len(mean))
        own = np.bincount(at, y - mean[at], minlength=len(mean)) / np.maximum(n_runs, 1)
        return mean + share * own

    def posterior(self, at: IntArray, y: FloatArray) -> Posterior:
        """Posterior of the noiseless log throughput.

        Args:
            at: Candidates that were observed, (n,); repeats are allowed.
            y: Their log throughput, (n,).
        """
        mean, J = self._linearized(np.arange(len(self._features)))
        JS = J @ self._belief.covariance
        variance = np.einsum("nk,nk->n", JS, J) + self.residual.std**2 + _OWN_LOG_STD**2
        best, shared = None, np.zeros_like(mean)
        if len(at):
            L, a = self._solved(at, y - mean[at], J[at], self.residual)
            K = JS @ J[at].T + self.residual.kernel(self._inputs, self._inputs[at])
            K[at] += _OWN_LOG_STD**2 * (at[:, None] == at)
            mean = mean + K @ a
            V = solve_triangular(L, K.T, lower=True, check_finite=False)
            variance = variance - np.einsum("ij,ij->j", V, V)
            best = int(at[np.argmax(mean[at])])
            shared = JS @ J[best] + self.residual.kernel(self._inputs, self._inputs[[best]])[:, 0]
            shared -= V.T @ V[:, best]
            shared[best] = variance[best]
        return Posterior(mean, np.sqrt(np.maximum(variance, 1e-10)), best, shared)

    def _linearized(self, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Prior mean (n,) and derivatives (n, k) of log throughput, linearised at z."""
        log_time, shares = log_sum(self._features[rows], self.z)
        J = -shares
        return -log_time + J @ (self._belief.mean - self.z), J

    def _solved(
        self, at: IntArray, offset: FloatArray, J: FloatArray, residual: Residual
    ) -> tuple[FloatArray, FloatArray]:
        X = self._inputs[at]
        A = J @ self._belief.covariance @ J.T + residual.kernel(X, X)
        A += _OWN_LOG_STD**2 * (at[:, None] == at)
        A.flat[:: len(at) + 1] += residual.noise**2
        L = cholesky(A, lower=True, check_finite=False)
        return L, cho_solve((L, True), offset, check_finite=False)

    def _best_residual(self, at: IntArray, offset: FloatArray, J: FloatArray) -> Residual:
        """The most probable of the grid, one axis pair after the other."""
        start = self.residual
        shapes = [
            replace(start, std=float(std), lengthscale=float(lengthscale))
            for std in _STDS
            for lengthscale in _LENGTHSCALES
        ]
        best = max(shapes, key=lambda residual: self._log_density(residual, at, offset, J))
        noises = [replace(best, noise=float(noise)) for noise in _NOISES]
        return max(noises, key=lambda residual: self._log_density(residual, at, offset, J))

    def _log_density(
        self, residual: Residual, at: IntArray, offset: FloatArray, J: FloatArray
    ) -> float:
        try:
            L, a = self._solved(at, offset, J, residual)
        except LinAlgError:
            return -np.inf
        value = -0.5 * offset @ a - np.log(L.diagonal()).sum()
        for found, median, scale in (
            (residual.std, self._std_median, _STD_LOG_SCALE),
            (residual.lengthscale, _LENGTHSCALE_MEDIAN, _LENGTHSCALE_LOG_SCALE),
            (residual.noise, _NOISE_MEDIAN, _NOISE_LOG_SCALE),
        ):
            value -= 0.5 * (np.log(found / median) / scale) ** 2
        return float(value)
