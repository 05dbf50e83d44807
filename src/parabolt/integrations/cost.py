"""What minimizers without constraints are told: a cost and a status.

SMAC3 and CARP-S share their names of statuses; Nevergrad takes the cost alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from parabolt.outcome import Status

if TYPE_CHECKING:
    from parabolt.outcome import Outcome

#: Cost of a run that gave no throughput: it made no iteration, and 0 is more than the cost of any
#: run that finished.
FAILURE_COST = 0.0

_STATUS_NAMES = {Status.OK: "SUCCESS", Status.OOM: "MEMORYOUT", Status.TIMEOUT: "TIMEOUT"}


def cost(outcome: Outcome) -> float:
    """-throughput in iterations/s, and `FAILURE_COST` for a run that did not finish."""
    return -outcome.throughput if outcome.status is Status.OK else FAILURE_COST


def status_name(outcome: Outcome) -> str:
    """Name of the outcome's status in the `StatusType` of SMAC3 and of CARP-S."""
    return _STATUS_NAMES.get(outcome.status, "CRASHED")
