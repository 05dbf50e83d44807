"""The memory margin as a number, for optimizers that can't leave a value out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from parabolt.outcome import OOM_MARGIN

if TYPE_CHECKING:
    from parabolt.outcome import Outcome


def told_margin(outcome: Outcome) -> float:
    """Memory margin of an outcome, feasible where <= 0.

    Where it is unknown, its size is that of an out-of-memory run, whose margin nobody knows either:
    -`OOM_MARGIN` for a run that finished, `OOM_MARGIN` for a configuration that does not run. NaN
    where the outcome says neither, such as after a crash.
    """
    if not math.isnan(outcome.memory_margin):
        return outcome.memory_margin
    if outcome.status.is_infeasible:
        return OOM_MARGIN
    return -OOM_MARGIN if outcome.is_feasible else math.nan
