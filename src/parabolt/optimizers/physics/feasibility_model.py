"""Whether a run finishes: what the cost model predicts, and where it has been wrong.

Symbols: n trials, N candidates.

    o (N,)      log-odds of failure that the calibrated cost model predicts, clipped
    f           correction: Gaussian process, a constant plus an RBF kernel over `structure_inputs`
    t (n,)      1 where a trial ran out of memory, 0 where it finished

log-odds of failure = o + f, t Bernoulli; f by Laplace's approximation (Rasmussen & Williams 2006,
section 3.4). Where the cost model is right, f stays near 0 and a prediction of 113 GiB on 80 GiB
stays near certain; where it is wrong, a few failures nearby outweigh it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit, logit

from parabolt.optimizers.gp.kernels import kernel_matrix

if TYPE_CHECKING:
    from parabolt.outcome import BoolArray, FloatArray, IntArray

#: No prediction is more certain than this (log-odds): one in 150 is wrong for no reason known.
MAX_LOG_ODDS = 5.0
#: Standard deviations of the correction, everywhere and here, and how far "here" reaches.
_SHIFT_STD, _LOCAL_STD, _LENGTHSCALE = 0.7, 2.0, 1.0
_MAX_STEPS, _TOLERANCE = 30, 1e-6


def failure_probability(
    predicted: FloatArray, inputs: FloatArray, at: IntArray, failed: BoolArray
) -> FloatArray:
    """Probability (N,) of failure after trials.

    Args:
        predicted: Probability of failure that the cost model predicts, (N,).
        inputs: Inputs of all candidates, (N, d).
        at: Places (n,) of the trials among the candidates.
        failed: Whether each ran out of memory, (n,).
    """
    tiny = expit(-MAX_LOG_ODDS)
    offset = logit(np.clip(predicted, tiny, 1.0 - tiny))
    if len(at) == 0:
        return np.asarray(expit(offset))
    K = _kernel(inputs, inputs[at])
    correction: FloatArray = K @ _weights(K[at], offset[at], failed)
    return np.asarray(expit(offset + correction))


def _weights(K: FloatArray, offset: FloatArray, failed: BoolArray) -> FloatArray:
    """K^-1 f (n,) at the mode of f, by Newton's method with step halving."""
    sign = np.where(failed, 1.0, -1.0)

    def log_density(a: FloatArray) -> float:
        f = K @ a
        return float(-np.logaddexp(0.0, -sign * (offset + f)).sum() - 0.5 * a @ f)

    a = np.zeros(len(offset))
    density = log_density(a)
    for _ in range(_MAX_STEPS):
        f = K @ a
        p = expit(offset + f)
        w = p * (1.0 - p)
        b = w * f + (failed - p)
        root = np.sqrt(w)
        factor = cho_factor(np.eye(len(f)) + root[:, None] * K * root, lower=True)
        step = b - root * cho_solve(factor, root * (K @ b)) - a
        size = 1.0
        while (new := log_density(a + size * step)) < density and size > _TOLERANCE:
            size *= 0.5
        a = a + size * step
        if new - density < _TOLERANCE:
            break
        density = new
    return a


def _kernel(A: FloatArray, B: FloatArray) -> FloatArray:
    lengthscales = np.full(A.shape[1], _LENGTHSCALE)
    return _LOCAL_STD**2 * kernel_matrix("rbf", A, B, lengthscales) + _SHIFT_STD**2
