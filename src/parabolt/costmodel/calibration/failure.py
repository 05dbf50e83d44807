"""Why runs die: the memory that is usable, and the hazard of other crashes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, ndtr

from parabolt.costmodel.terms.memory import active_features
from parabolt.costmodel.terms.term import log_sum

if TYPE_CHECKING:
    from parabolt.costmodel.calibration.belief import CoefficientBelief
    from parabolt.costmodel.calibration.evidence import StackedTrials
    from parabolt.outcome import FloatArray

#: Doubt about a measured peak when it is compared with what is usable.
_PEAK_LOG_STD = 0.003
_GRID = np.linspace(-3.0, 3.0, 61)
_MAX_STEPS, _TOLERANCE, _TINY = 30, 1e-6, 1e-300


@dataclass(frozen=True, eq=False)
class FailureBelief:
    """Why runs die.

    Attributes:
        usable: Median share of a GPU's memory that a run can use.
        usable_log_std: Standard deviation of its logarithm.
        crash: Weights of `CRASH_FEATURES`; its sigma means nothing.
    """

    usable: float
    usable_log_std: float
    crash: CoefficientBelief


def oom_probability(
    log_peak: FloatArray,
    variance: FloatArray,
    log_capacity: FloatArray,
    usable: float,
    log_std: float,
) -> FloatArray:
    """Probability (n,) that the peak exceeds what is usable; all logarithms are of GiB."""
    spread = np.sqrt(variance + log_std**2)
    probability: FloatArray = ndtr((log_peak - log_capacity - np.log(usable)) / spread)
    return probability


def fit_failures(
    prior: FailureBelief, memory: CoefficientBelief, trials: StackedTrials
) -> tuple[FailureBelief, FloatArray]:
    """Usable memory and crash hazard after trials.

    The usable share is found on a grid, the hazard by Newton's method; twice in turn, as each
    explains failures that the other need not.

    Args:
        prior: Belief before.
        memory: Belief about the coefficients of memory, calibrated already or not.
        trials: The trials; crashes and timeouts say nothing here.

    Returns:
        The belief after, and the probability (n,) that memory was what a failed trial died of.
    """
    active = active_features(trials.memory, np.exp(memory.mean), trials.last_shares)
    log_peak, jacobian = log_sum(active, memory.mean)
    variance = memory.variance(jacobian) + memory.sigma**2
    known = np.isfinite(trials.peak_memory_gib)
    log_peak = np.where(known, np.log(np.where(known, trials.peak_memory_gib, 1.0)), log_peak)
    variance = np.where(known, _PEAK_LOG_STD**2, variance)
    excess, spread = log_peak - np.log(trials.capacity_gib), np.sqrt(variance)
    log_usable, log_std, crash = np.log(prior.usable), prior.usable_log_std, prior.crash
    for _ in range(2):
        hazard = expit(trials.crash @ crash.mean)
        log_usable, log_std = _usable(prior, trials, excess, spread, hazard)
        by_memory = ndtr((excess - log_usable) / np.hypot(spread, log_std))
        crash = _hazard(prior.crash, trials, by_memory)
    hazard = expit(trials.crash @ crash.mean)
    either = by_memory + (1.0 - by_memory) * hazard
    after = FailureBelief(float(np.exp(log_usable)), log_std, crash)
    return after, by_memory / (either + _TINY)


def _usable(
    prior: FailureBelief,
    trials: StackedTrials,
    excess: FloatArray,
    spread: FloatArray,
    hazard: FloatArray,
) -> tuple[float, float]:
    """Mean and standard deviation of the log usable share, on a grid of three prior sigmas."""
    offsets = _GRID * prior.usable_log_std
    shares = np.log(prior.usable) + offsets
    by_memory = ndtr((excess[:, None] - shares) / spread[:, None])
    survives = np.log((1.0 - by_memory[trials.is_ok]) + _TINY).sum(axis=0)
    risk = hazard[trials.is_oom, None]
    dies = np.log(by_memory[trials.is_oom] * (1.0 - risk) + risk + _TINY).sum(axis=0)
    log_weight = survives + dies - 0.5 * _GRID**2
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    mean = float(weight @ shares)
    step = _GRID[1] - _GRID[0]
    variance = weight @ (shares - mean) ** 2 + (step * prior.usable_log_std) ** 2 / 12.0
    return mean, float(np.sqrt(variance))


def _hazard(
    prior: CoefficientBelief, trials: StackedTrials, by_memory: FloatArray
) -> CoefficientBelief:
    """Posterior mode of the logistic weights, by Newton's method with expected curvature."""
    used = trials.is_ok | trials.is_oom
    X, ok, memory = trials.crash[used], trials.is_ok[used], by_memory[used]
    precision = np.linalg.inv(prior.covariance)

    def loss(w: FloatArray) -> float:
        p = expit(X @ w)
        likelihood = np.where(
            ok, np.log1p(-p * (1.0 - 1e-12)), np.log(memory + (1 - memory) * p + _TINY)
        )
        return float(0.5 * (w - prior.mean) @ precision @ (w - prior.mean) - likelihood.sum())

    w, last = prior.mean, loss(prior.mean)
    curvature = precision
    for _ in range(_MAX_STEPS):
        p = expit(X @ w)
        blame = np.where(ok, 0.0, (1 - memory) * p / (memory + (1 - memory) * p + _TINY))
        gradient = X.T @ np.where(ok, -p, blame * (1.0 - p)) - precision @ (w - prior.mean)
        share = np.where(ok, 1.0, blame)
        curvature = (X * (p * (1.0 - p) * share)[:, None]).T @ X + precision
        step = np.linalg.solve(curvature, gradient)
        while (new := loss(w + step)) > last and np.abs(step).max() > _TOLERANCE:
            step = 0.5 * step
        if new > last - _TOLERANCE:
            break
        w, last = w + step, new
    return replace(prior, mean=w, covariance=np.linalg.inv(curvature))
