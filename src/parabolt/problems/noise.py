"""Observation noise, and PyTorch's stream of standard normals without PyTorch."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from parabolt.errors import OptionError
from parabolt.problems.problem import Problem, ProblemWrapper

if TYPE_CHECKING:
    from parabolt.outcome import FloatArray, IntArray, Outcomes


class NormalStream(Protocol):
    """A source of standard normals, such as `numpy.random.Generator`."""

    def standard_normal(self, size: int, /) -> FloatArray:
        """The next `size` standard normals, (size,) float64."""


class TorchNormalStream:
    """The double-precision normals of PyTorch's CPU generator after `manual_seed(seed)`.

    MT19937 gives 53-bit uniforms, Box-Muller turns two into two normals. Identical to
    `torch.randn(k, dtype=torch.double)` for k < 16; PyTorch fills longer requests in another order.
    """

    def __init__(self, seed: int) -> None:
        self._bits = np.random.RandomState(seed)
        self._spare: float | None = None

    def standard_normal(self, size: int, /) -> FloatArray:
        """See `NormalStream.standard_normal`."""
        return np.array([self._next() for _ in range(size)])

    def _next(self) -> float:
        if self._spare is not None:
            value, self._spare = self._spare, None
            return value
        angle = 2.0 * math.pi * self._uniform()
        radius = math.sqrt(-2.0 * math.log1p(-self._uniform()))
        self._spare = radius * math.sin(angle)
        return radius * math.cos(angle)

    def _uniform(self) -> float:
        high, low = (int(w) for w in self._bits.randint(0, 2**32, size=2, dtype=np.uint64))
        return ((high << 32 | low) & (2**53 - 1)) / 2**53


class NoisyProblem(ProblemWrapper):
    """Adds Gaussian noise to every finite throughput; status and memory stay noiseless.

    No run is slower than standing still: a figure that noise would bring below 0 is reflected.

    Each evaluation draws once per configuration, in order, from the wrapper's own stream, whether
    or not there is a throughput to disturb.

    Args:
        problem: The noiseless problem.
        std: Standard deviation in iterations/s.
        stream: Source of standard normals.
    """

    def __init__(self, problem: Problem, *, std: float, stream: NormalStream) -> None:
        if not 0 <= std < math.inf:
            raise OptionError(f"std: expected a number >= 0, got {std}")
        super().__init__(problem)
        self.std = std
        self._stream = stream

    def _evaluate_rows(self, rows: IntArray) -> Outcomes:
        outcomes = self.problem._evaluate_rows(rows)
        noise = self.std * self._stream.standard_normal(len(rows))
        return replace(outcomes, throughput=np.abs(outcomes.throughput + noise))

    def _identity(self) -> tuple[object, ...]:
        return (id(self),)  # a stream has a state, so no two noisy problems are the same
