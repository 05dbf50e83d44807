"""The cost model of an instance: step time, peak memory and P(OOM) of any configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, ndtri

from parabolt.costmodel.calibration.calibration import Calibration
from parabolt.costmodel.calibration.failure import oom_probability
from parabolt.costmodel.explanation import Explanation
from parabolt.costmodel.layout import Layout, configurations_of
from parabolt.costmodel.resolved_instance import ResolvedInstance
from parabolt.costmodel.step_time import TIME_TERMS, time_features
from parabolt.costmodel.terms.crash import crash_features
from parabolt.costmodel.terms.memory import (
    MEMORY_TERMS,
    active_features,
    last_stage_shares,
    memory_features,
    peak_bytes,
)
from parabolt.costmodel.terms.term import log_sum
from parabolt.outcome import GIB

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from parabolt.instances.specs import Instance
    from parabolt.outcome import FloatArray
    from parabolt.space.configuration import Configuration
    from parabolt.space.configurations import Configurations

#: Rows per block, so that intermediate columns stay in a core's cache.
_BLOCK = 4096


@dataclass(frozen=True, eq=False)
class Prediction:
    """What the model says of n configurations; arrays (n,) float64.

    Attributes:
        step_time_s: Median seconds per iteration.
        log_time_std: Standard deviation of its logarithm: coefficients and scatter.
        peak_memory_gib: Median peak memory in GiB.
        log_memory_std: Standard deviation of its logarithm.
        p_oom: Probability that the run dies, of memory or otherwise.
    """

    step_time_s: FloatArray
    log_time_std: FloatArray
    peak_memory_gib: FloatArray
    log_memory_std: FloatArray
    p_oom: FloatArray

    @property
    def throughput(self) -> FloatArray:
        """Median iterations per second."""
        return 1.0 / self.step_time_s

    def throughput_interval(self, coverage: float = 0.9) -> tuple[FloatArray, FloatArray]:
        """Central interval of the throughput in iterations per second."""
        reach = np.exp(float(ndtri(0.5 + 0.5 * coverage)) * self.log_time_std)
        return self.throughput / reach, self.throughput * reach


class CostModel:
    """Step time and memory of an instance's configurations.

    Args:
        instance: The instance.
        calibration: Belief about the coefficients; what specifications say by default.

    Raises:
        UnknownNameError: If the instance names a GPU that the catalogue doesn't have.
    """

    def __init__(self, instance: Instance, calibration: Calibration | None = None) -> None:
        self.instance = instance
        self.resolved = ResolvedInstance.of(instance)
        self.calibration = calibration or Calibration.prior()

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the instance doesn't state and the model had to assume."""
        return self.resolved.assumptions

    def layout(self, X: npt.ArrayLike | Sequence[Configuration] | Configurations) -> Layout:
        """The layout of configurations, encoded rows (n, d), or columns of raw sizes."""
        return Layout.of(self.resolved, configurations_of(self.instance, X))

    def predict(self, X: npt.ArrayLike | Sequence[Configuration] | Configurations) -> Prediction:
        """Step time, memory and P(OOM), with uncertainty."""
        x = self.layout(X)
        log_time, time_jacobian = log_sum(time_features(x), self.calibration.time.mean)
        log_peak, memory_variance = self._log_peak(x)
        time = self.calibration.time
        return Prediction(
            np.exp(log_time),
            np.sqrt(time.variance(time_jacobian) + time.scatter**2),
            np.exp(log_peak),
            np.sqrt(memory_variance),
            self._p_failure(x, log_peak, memory_variance),
        )

    def point(
        self, X: npt.ArrayLike | Sequence[Configuration] | Configurations
    ) -> tuple[FloatArray, FloatArray]:
        """Median step time in seconds and peak memory in GiB, (n,) each, as fast as it goes."""
        sizes = configurations_of(self.instance, X)
        n = len(sizes.dp)
        time, memory = np.empty(n), np.empty(n)
        for start in range(0, n, _BLOCK):
            block = slice(start, start + _BLOCK)
            x = Layout.of(self.resolved, sizes.take(block))
            time[block] = 0.0
            for term, coefficient in zip(
                TIME_TERMS, np.exp(self.calibration.time.mean), strict=True
            ):
                time[block] += coefficient * term.of(x)
            memory[block] = peak_bytes(x, np.exp(self.calibration.memory.mean)) / GIB
        return time, memory

    def explain(self, configuration: Configuration) -> Explanation:
        """Where a configuration's time and memory go, term by term."""
        x = self.layout([configuration])
        time = time_features(x)[0] * np.exp(self.calibration.time.mean)
        coefficients = np.exp(self.calibration.memory.mean)
        memory = active_features(memory_features(x), coefficients, last_stage_shares(x))[0]
        prediction = self.predict([configuration])
        return Explanation(
            configuration,
            {t.name: float(s) for t, s in zip(TIME_TERMS, time, strict=True)},
            {t.name: float(g) for t, g in zip(MEMORY_TERMS, memory * coefficients, strict=True)},
            self.resolved.capacity_gib,
            float(prediction.log_time_std[0]),
            float(prediction.log_memory_std[0]),
            float(prediction.p_oom[0]),
            self.assumptions,
        )

    def _log_peak(self, x: Layout) -> tuple[FloatArray, FloatArray]:
        belief = self.calibration.memory
        active = active_features(memory_features(x), np.exp(belief.mean), last_stage_shares(x))
        log_peak, jacobian = log_sum(active, belief.mean)
        return log_peak, belief.variance(jacobian) + belief.scatter**2

    def _p_failure(self, x: Layout, log_peak: FloatArray, variance: FloatArray) -> FloatArray:
        failures = self.calibration.failures
        log_capacity = np.log(np.full(len(x), self.resolved.capacity_gib))
        of_memory = oom_probability(
            log_peak, variance, log_capacity, failures.usable, failures.usable_log_std
        )
        hazard = expit(crash_features(x) @ failures.crash.mean)
        return of_memory + (1.0 - of_memory) * hazard
