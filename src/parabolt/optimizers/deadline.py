"""A time budget that work can ask about while it goes on."""

from __future__ import annotations

import math
import time

from parabolt.errors import OptionError


class Deadline:
    """Counts down from its making; unlimited where there is no limit.

    Args:
        limit_s: Seconds, or None for no limit.

    Attributes:
        was_hit: Whether any work was cut short because of it.

    Raises:
        OptionError: If the limit isn't a positive number.
    """

    def __init__(self, limit_s: float | None = None) -> None:
        is_number = isinstance(limit_s, (int, float)) and not isinstance(limit_s, bool)
        if limit_s is not None and not (is_number and 0.0 < limit_s < math.inf):
            raise OptionError(
                f"ask_time_limit_s: expected a positive number or None, got {limit_s!r}"
            )
        self.limit_s = limit_s
        self.was_hit = False
        self._start = time.perf_counter()

    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._start

    def is_over(self, share: float = 1.0) -> bool:
        """Whether `share` of the limit has passed; if so it counts as hit."""
        over = self.limit_s is not None and self.elapsed_s() >= share * self.limit_s
        self.was_hit |= over
        return over
