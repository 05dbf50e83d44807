"""95 % intervals of means and of shares, with scipy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import binomtest, bootstrap

if TYPE_CHECKING:
    from parabolt.outcome import FloatArray

_N_RESAMPLES = 10_000


def mean_interval(values: FloatArray, *, confidence: float = 0.95) -> tuple[float, float]:
    """Percentile-bootstrap interval of the mean of values (n,), from a fixed seed.

    NaN for both ends where the values are all the same, or there is only one: they say nothing of
    their spread.
    """
    if len(values) == 0 or np.ptp(values) == 0.0:
        return math.nan, math.nan
    result = bootstrap(
        (values,),
        np.mean,
        confidence_level=confidence,
        n_resamples=_N_RESAMPLES,
        method="percentile",
        rng=np.random.default_rng(0),
        batch=max(1, 2_000_000 // len(values)),
    )
    return float(result.confidence_interval.low), float(result.confidence_interval.high)


def share_interval(count: int, n: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a share (Wilson 1927), as fractions of 1; NaN where n is 0."""
    if n == 0:
        return math.nan, math.nan
    found = binomtest(count, n).proportion_ci(confidence, method="wilson")
    return float(found.low), float(found.high)
