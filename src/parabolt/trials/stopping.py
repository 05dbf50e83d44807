"""When a running trial can't win any more.

Symbols: t the timed steps seen so far, k of n; y = 1 / mean(t) their throughput. To first order y
has the variance v = std(t)^2 / mean(t)^4 / k, widened by (k - 1) / (k - 3), the variance of
Student's t with k - 1 degrees of freedom, because std(t) is itself estimated. With the surrogate's
belief N(m, s^2) about the throughput the posterior is the precision-weighted N(m', s'^2). What
would be measured at the end is (k y + (n - k) f) / n with f the mean of the steps to come, of
variance s'^2 + std(t)^2 / mean(t)^4 / (n - k).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from parabolt.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Fewest timed steps after which a trial may be stopped.
MIN_STEPS = 5


@dataclass(frozen=True)
class Belief:
    """What is believed of a configuration's throughput before it has run.

    Attributes:
        mean: Iterations/s.
        std: Standard deviation, positive.
    """

    mean: float
    std: float


@dataclass(frozen=True)
class StoppingRule:
    """Stops a trial whose chance to beat the incumbent is below a threshold.

    Attributes:
        threshold: The chance, between 0 and 1 (exclusive).
        min_steps: Timed steps that are always waited for, at least 5.

    Raises:
        SpecError: If a value is outside.
    """

    threshold: float = 0.05
    min_steps: int = MIN_STEPS

    def __post_init__(self) -> None:
        if not 0.0 < self.threshold < 1.0:
            raise SpecError(f"threshold: expected a number between 0 and 1, got {self.threshold}")
        if self.min_steps < MIN_STEPS:
            raise SpecError(f"min_steps: expected at least {MIN_STEPS}, got {self.min_steps}")

    def stops(
        self,
        step_times_s: Sequence[float],
        *,
        n_timed: int,
        incumbent: float,
        belief: Belief | None = None,
    ) -> bool:
        """Whether to stop; the arguments are those of `chance_to_beat`."""
        if not self.min_steps <= len(step_times_s) < n_timed:
            return False
        chance = chance_to_beat(step_times_s, n_timed=n_timed, incumbent=incumbent, belief=belief)
        return chance < self.threshold


def chance_to_beat(
    step_times_s: Sequence[float],
    *,
    n_timed: int,
    incumbent: float,
    belief: Belief | None = None,
) -> float:
    """Probability that a trial ends with a higher throughput than the incumbent.

    Args:
        step_times_s: Timed steps seen so far, k >= 4 of `n_timed`.
        n_timed: Timed steps of the whole trial, n > k.
        incumbent: Throughput to beat in iterations/s.
        belief: The surrogate's belief; None for none.
    """
    t = np.asarray(step_times_s, dtype=np.float64)
    k, n = len(t), n_timed
    y = 1.0 / t.mean()
    step_variance = t.var(ddof=1) * y**4
    mean, variance = y, step_variance / k * (k - 1) / (k - 3)
    if belief is not None and variance > 0.0:
        weight = variance / (variance + belief.std**2)
        mean = (1.0 - weight) * y + weight * belief.mean
        variance *= 1.0 - weight
    end_mean = (k * y + (n - k) * mean) / n
    end_std = (n - k) / n * math.sqrt(variance + step_variance / (n - k))
    if end_std == 0.0:
        return float(end_mean > incumbent)
    return 0.5 * math.erfc((incumbent - end_mean) / end_std / math.sqrt(2.0))
