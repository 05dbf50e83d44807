"""Numbers of things in words."""

from __future__ import annotations


def count(n: int, noun: str) -> str:
    """Such as `1 seed` and `3 seeds`."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
