"""Numbers of things in words."""

from __future__ import annotations

import math


def count(n: int, noun: str) -> str:
    """Such as `1 seed` and `3 seeds`."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def with_interval(mean: float, low: float, high: float) -> str:
    """`3.69 [2.31, 4.62]`; the mean alone where its interval is not known (NaN)."""
    return f"{mean:.2f}" if math.isnan(low) else f"{mean:.2f} [{low:.2f}, {high:.2f}]"
