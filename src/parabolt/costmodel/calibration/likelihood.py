"""Residuals of trials under the cost model, for `belief.update`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_ndtr

from parabolt.costmodel.calibration.belief import Residuals
from parabolt.costmodel.terms.memory import active_features

if TYPE_CHECKING:
    from collections.abc import Callable

    from parabolt.costmodel.calibration.evidence import Trials
    from parabolt.costmodel.calibration.failure import Failure
    from parabolt.outcome import FloatArray

_LOG_SQRT_2_PI = 0.5 * np.log(2.0 * np.pi)


def log_sum(features: FloatArray, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Logarithm of the sum of terms, and its derivatives by the log-coefficients.

    Args:
        features: Terms (n, k).
        z: Log-coefficients (k,).

    Returns:
        log(features exp(z)) (n,), and (n, k) the share of each term in the sum.
    """
    parts = features * np.exp(z)
    total = parts.sum(axis=1)
    return np.log(total), parts / total[:, None]


def time_residuals(trials: Trials) -> Callable[[FloatArray, float], Residuals]:
    """Residuals of measured log step times."""
    measured = np.isfinite(trials.step_time_s)
    features, target = trials.time[measured], np.log(trials.step_time_s[measured])
    nothing = np.zeros(features.shape[1])

    def residuals(z: FloatArray, sigma: float) -> Residuals:
        del sigma
        predicted, jacobian = log_sum(features, z)
        return Residuals(target - predicted, jacobian, nothing, np.diag(nothing), 0.0)

    return residuals


def memory_residuals(trials: Trials, failure: Failure) -> Callable[[FloatArray, float], Residuals]:
    """Residuals of measured log peaks, and out-of-memory trials as censored peaks.

    An out-of-memory trial contributes log Phi((log peak - log usable memory) / sigma), weighted by
    the probability that memory was what it died of.
    """
    measured = np.isfinite(trials.peak_memory_gb)
    target = np.log(trials.peak_memory_gb[measured])
    oom = trials.is_oom
    limit = np.log(failure.usable * trials.capacity_gb[oom])
    blame = failure.blame_memory[oom]

    def residuals(z: FloatArray, sigma: float) -> Residuals:
        active = active_features(trials.memory, np.exp(z), trials.last_shares)
        predicted, jacobian = log_sum(active, z)
        excess = (predicted[oom] - limit) / sigma
        log_probability = log_ndtr(excess)
        mills = np.exp(-0.5 * excess**2 - _LOG_SQRT_2_PI - log_probability)
        censored = jacobian[oom]
        return Residuals(
            target - predicted[measured],
            jacobian[measured],
            censored.T @ (blame * mills) / sigma,
            (censored * (blame * mills * (mills + excess))[:, None]).T @ censored / sigma**2,
            -float(blame @ log_probability),
        )

    return residuals
