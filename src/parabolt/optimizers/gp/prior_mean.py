"""Parametric prior means: analytic models of step time and memory whose coefficients are learned.

Both are linear in positive coefficients exp(theta_k): a configuration gives features (k,), and the
coefficients stand for what hardware and software make of them. They know the instance and the
configuration only; the coefficients are learned with the kernel, from what the optimizer is told.

Symbols: F is (n, k) features, theta is (k,), m is (n,) the mean in the unit of the targets.
Group sizes dp, tp, pp, cp; g GPUs per host. With ranks laid out tp first, then cp, then dp, a data
parallel group has p_in = clip(g / (tp cp), 1, dp) ranks in each host and p_out = dp / p_in hosts.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from parabolt.outcome import OOM_MARGIN

if TYPE_CHECKING:
    from parabolt.instances.specs import Instance
    from parabolt.outcome import FloatArray
    from parabolt.space.configurations import Configurations

#: Model-based steps after which the communication model has no weight left.
PRIOR_STEPS = 20

_LEAST_COST_S = 1e-7
#: Sharpness of the bend by which a memory margin approaches that of an out-of-memory run.
_BEND = 20.0


class PriorMean(ABC):
    """A mean function with parameters theta (k,), each with the prior N(initial, theta_scale^2).

    Args:
        instance: The instance whose configurations are predicted.
    """

    #: Standard deviation of the priors of log coefficients: a factor of e^2 either way.
    theta_scale = 2.0

    def __init__(self, instance: Instance) -> None:
        self._instance = instance

    def features(self, X: FloatArray) -> FloatArray:
        """Features F (n, k) of inputs X (n, d) in the unit cube of the encoding's bounds."""
        return np.stack(self._features(self._instance.encoding.from_unit(X)), axis=1)

    def value(self, F: FloatArray, theta: FloatArray) -> FloatArray:
        """The mean m (n,)."""
        return self.value_and_jacobian(F, theta)[0]

    @abstractmethod
    def value_and_jacobian(self, F: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The mean m (n,), and dm/dtheta (n, k)."""

    @abstractmethod
    def initial(self, F: FloatArray, y: FloatArray) -> FloatArray:
        """Where a fit starts (k,), and the location of the priors, given targets y (n,)."""

    @abstractmethod
    def _features(self, sizes: Configurations) -> list[FloatArray]:
        """The k features, each (n,)."""


def _equal_shares(F: FloatArray, total: float) -> FloatArray:
    """Log coefficients (k,) at which every term has the same average, and all sum to `total`."""
    average = F.mean(axis=0)
    return np.asarray(np.log(total / F.shape[1]) - np.log(np.where(average > 0.0, average, 1.0)))


class ThroughputMean(PriorMean):
    """Throughput 1 / (communication + computation), per iteration.

    Communication (Thakur et al. 2005): a ring all-reduce of n bytes over p ranks takes
    2 (p - 1) alpha + ((p - 1) / p) n beta. Data parallel: n ~ 1 / (tp pp), over p_in ranks within a
    host and p_out across hosts, each with its own alpha and beta; ZeRO-3 gathers parameters as
    well, for one more bandwidth term. Tensor parallel: n ~ 1 / (dp cp pp); its groups stay in a
    host (a rule of the space). Pipeline: 2 (pp - 1) transfers of each of pp micro-batches, of size
    ~ 1 / (dp cp pp). Products such as beta times model size are one coefficient each.
    Computation: (1 + (pp - 1) / (chunks pp)) / (dp tp pp cp), the second term being the bubble.
    Knobs that are in no term (bucket, sp, ZeRO-2) are left to the kernel.

    The communication terms have the weight w = cos(pi t / 40), and a learned constant 1 - w; from
    step t = 20 on, w is 0 (the published schedule; arXiv 2605.17000).

    Coefficients start where all terms have equal shares of the mean step time observed.

    Args:
        instance: The instance.
        step: t, the number of model-based steps taken.
    """

    def __init__(self, instance: Instance, step: int) -> None:
        super().__init__(instance)
        self.weight = math.cos(math.pi * min(step, PRIOR_STEPS) / (2.0 * PRIOR_STEPS))
        if step >= PRIOR_STEPS:
            self.weight = 0.0

    def _features(self, sizes: Configurations) -> list[FloatArray]:
        dp, tp, pp, cp, chunks, zero = (
            np.asarray(getattr(sizes, name), dtype=np.float64)
            for name in ("dp", "tp", "pp", "cp", "chunks", "zero")
        )
        p_in = np.clip(self._instance.cluster.gpus_per_host / (tp * cp), 1.0, dp)
        p_out = dp / p_in
        gradients, activations = 1.0 / (tp * pp), 1.0 / (dp * cp * pp)
        communication = [
            2.0 * (p_in - 1.0),
            (p_in - 1.0) / p_in * gradients,
            2.0 * (p_out - 1.0),
            (p_out - 1.0) / p_out * gradients,
            np.where(zero == 3, (dp - 1.0) / dp * gradients, 0.0),
            2.0 * (tp - 1.0),
            (tp - 1.0) / tp * activations,
            2.0 * (pp - 1.0) * pp,
            2.0 * (pp - 1.0) * pp * activations,
        ]
        computation = (1.0 + (pp - 1.0) / (chunks * pp)) / (dp * tp * pp * cp)
        constant = np.full(len(dp), 1.0 - self.weight)
        return [computation, constant, *(self.weight * term for term in communication)]

    def value_and_jacobian(self, F: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """See `PriorMean`."""
        terms = F * np.exp(theta)
        m = 1.0 / np.maximum(terms.sum(axis=1), _LEAST_COST_S)
        return m, -terms * (m**2)[:, None]

    def initial(self, F: FloatArray, y: FloatArray) -> FloatArray:
        """See `PriorMean`."""
        measured = y[y > 0.0]
        return _equal_shares(F, float(np.mean(1.0 / measured)) if len(measured) else 1.0)


class MemoryMean(PriorMean):
    """Memory margin of parameters / (pp tp) + activations / (tp cp grad_accum) + overhead, in GiB.

    Activations: pp micro-batches are in flight over layers / pp. Above the capacity the margin
    bends towards that of an out-of-memory run, which reports no figure (published likewise):
    pad - softplus(pad - margin).

    Coefficients start where the three terms have equal shares of the mean peak observed.
    """

    def _features(self, sizes: Configurations) -> list[FloatArray]:
        tp, pp, cp, accumulated = (
            np.asarray(getattr(sizes, name), dtype=np.float64)
            for name in ("tp", "pp", "cp", "grad_accum")
        )
        return [1.0 / (pp * tp), 1.0 / (tp * cp * accumulated), np.ones(len(tp))]

    def value_and_jacobian(self, F: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """See `PriorMean`."""
        terms = F * np.exp(theta) / self._instance.cluster.memory_gib
        u = _BEND * (OOM_MARGIN - (terms.sum(axis=1) - 1.0))
        m = OOM_MARGIN - np.logaddexp(0.0, u) / _BEND
        return m, terms * expit(u)[:, None]

    def initial(self, F: FloatArray, y: FloatArray) -> FloatArray:
        """See `PriorMean`."""
        peak_gib = (1.0 + float(np.mean(y))) * self._instance.cluster.memory_gib
        return _equal_shares(F, max(peak_gib, 1e-3))
