"""Why a configuration is the next to try, in figures and words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from parabolt.space.configuration import Configuration


@dataclass(frozen=True)
class Reason:
    """Why a configuration is the next to try.

    Attributes:
        configuration: The configuration.
        throughput: Median predicted iterations per second.
        throughput_interval: Its central 90 % interval.
        peak_memory_gib: Median predicted peak memory, GiB.
        p_feasible: Probability that the run finishes.
        p_better: Probability that it beats the best run so far; NaN without a finished run.
        expected_gain: Expected gain over the best run so far, as a fraction; NaN without one.
        terms: Largest terms of its predicted step time, name to share, largest first.
    """

    configuration: Configuration
    throughput: float
    throughput_interval: tuple[float, float]
    peak_memory_gib: float
    p_feasible: float
    p_better: float
    expected_gain: float
    terms: dict[str, float]

    def __str__(self) -> str:
        low, high = self.throughput_interval
        lines = [
            f"{self.configuration}",
            f"  throughput   {self.throughput:.4f} iterations/s, 90 % between {low:.4f} and "
            f"{high:.4f}",
            f"  peak memory  {self.peak_memory_gib:.1f} GiB, finishes with probability "
            f"{self.p_feasible:.2f}",
            "  step time    "
            + ", ".join(f"{name} {100 * share:.0f} %" for name, share in self.terms.items()),
        ]
        if np.isfinite(self.expected_gain):
            lines.append(
                f"  hoped for    {100 * self.expected_gain:.2f} % over the best run, which it "
                f"beats with probability {self.p_better:.2f}"
            )
        else:
            lines.append("  hoped for    a first finished run")
        return "\n".join(lines)
