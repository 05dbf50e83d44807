"""Acquisition values in log form, as functions of arrays."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import erfcx, gammaln, log_ndtr, stdtr

if TYPE_CHECKING:
    from parabolt.outcome import FloatArray

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
#: Below this the difference in h(u) drowns in rounding, and two terms of its series are exact.
_SERIES_BELOW = -1e3


def log_expected_improvement(mean: FloatArray, std: FloatArray, best: float) -> FloatArray:
    """Log expected improvement over `best`, for a maximised Gaussian (N,).

    log EI = log s + log h(u), u = (mean - best)/s, h(u) = phi(u) + u Phi(u), computed without
    cancellation however small h is (Ament et al. 2023, eq. 9).

    Args:
        mean: Posterior means (N,).
        std: Posterior standard deviations (N,), positive.
        best: The value to improve on.
    """
    u = (mean - best) / std
    return np.log(std) + _log_h(u)


def log_expected_improvement_t(
    mean: FloatArray, std: FloatArray, best: float, *, dof: float
) -> FloatArray:
    """Log expected improvement over `best`, for a maximised Student's t (N,).

    EI = s ((nu + u^2)/(nu - 1) t(u) + u T(u)), u = (mean - best)/s, with density t and distribution
    T (Shah, Wilson and Ghahramani 2014, section 5). It falls with a power of u where that of a
    Gaussian falls like its density.

    Args:
        mean: Locations (N,).
        std: Scales (N,), positive.
        best: The value to improve on.
        dof: Degrees of freedom nu, above 1.
    """
    u = (mean - best) / std
    log_constant = gammaln((dof + 1.0) / 2.0) - gammaln(dof / 2.0) - 0.5 * math.log(dof * math.pi)
    density = np.exp(log_constant - (dof + 1.0) / 2.0 * np.log1p(u**2 / dof))
    value = (dof + u**2) / (dof - 1.0) * density + u * stdtr(dof, u)
    return np.asarray(np.log(std) + np.log(value))


def log_probability_feasible(mean: FloatArray, std: FloatArray) -> FloatArray:
    """Log probability (N,) that a Gaussian margin is at most 0: log Phi(-mean/std)."""
    return np.asarray(log_ndtr(-mean / std))


def _log_h(u: FloatArray) -> FloatArray:
    value = np.empty_like(u)
    high, series = u > -1.0, u < _SERIES_BELOW
    middle = ~high & ~series
    x = u[high]
    density = np.exp(-0.5 * x**2 - _LOG_SQRT_2PI)
    value[high] = np.log(density + x * np.exp(log_ndtr(x)))
    x = u[middle]
    # h = phi(x) (1 + x Phi(x)/phi(x)), and Phi/phi is a scaled complementary error function.
    ratio = math.sqrt(math.pi / 2.0) * erfcx(-x / math.sqrt(2.0))
    value[middle] = -0.5 * x**2 - _LOG_SQRT_2PI + np.log1p(x * ratio)
    x = u[series]
    value[series] = -0.5 * x**2 - _LOG_SQRT_2PI - 2.0 * np.log(-x) + np.log1p(-3.0 / x**2)
    return value
