"""Residuals of trials under the cost model, for `belief.update`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_ndtr

from parabolt.costmodel.calibration.belief import Residuals
from parabolt.costmodel.terms.memory import active_features
from parabolt.costmodel.terms.term import log_sum

if TYPE_CHECKING:
    from collections.abc import Callable

    from parabolt.costmodel.calibration.evidence import StackedTrials
    from parabolt.outcome import FloatArray

_LOG_SQRT_2_PI = 0.5 * np.log(2.0 * np.pi)


def time_residuals(trials: StackedTrials) -> Callable[[FloatArray, float], Residuals]:
    """Residuals of measured log step times."""
    measured = np.isfinite(trials.step_time_s)
    features, target = trials.time[measured], np.log(trials.step_time_s[measured])
    nothing = np.zeros(features.shape[1])

    def residuals(z: FloatArray, sigma: float) -> Residuals:
        del sigma
        predicted, jacobian = log_sum(features, z)
        return Residuals(target - predicted, jacobian, nothing, np.diag(nothing), 0.0)

    return residuals


def memory_residuals(
    trials: StackedTrials, usable: float, blame_memory: FloatArray
) -> Callable[[FloatArray, float], Residuals]:
    """Residuals of measured log peaks, and out-of-memory trials as censored peaks.

    An out-of-memory trial contributes log Phi((log peak - log usable memory) / sigma), weighted by
    the probability that memory was what it died of.

    Args:
        trials: The trials.
        usable: Share of a GPU's memory that a run can use.
        blame_memory: Probability (n,) that memory was what a failed trial died of.
    """
    measured = np.isfinite(trials.peak_memory_gib)
    target = np.log(trials.peak_memory_gib[measured])
    oom = trials.is_oom
    limit = np.log(usable * trials.capacity_gib[oom])
    blame = blame_memory[oom]

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
