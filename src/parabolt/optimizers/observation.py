"""What an optimizer may be told of a candidate, and what each status is to it.

| status | throughput | whether the candidate runs |
|---|---|---|
| `ok` | measured | it does |
| `stopped` | measured over fewer steps, and too low to win: never the best | unknown |
| `oom` | none, or imputed | it does not, for lack of memory |
| `failed` | none, or imputed | it does not, for lack of memory or another reason |
| `crashed`, `timeout`, `invalid`, `node` | none | unknown: no evidence at all |

An observation of any status counts as a try of its candidate. A memory margin that is NaN is
missing: a finished run without one says nothing of memory; where a run died it is `OOM_MARGIN`.
"""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from parabolt.errors import ObservationError
from parabolt.outcome import FIELDS, Outcome, Source, Status
from parabolt.space.configuration import Configuration

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Iterations/s that a throughput lies between. Within them squares are floats, too.
MIN_THROUGHPUT, MAX_THROUGHPUT = 1e-100, 1e100


def check_observation(configuration: Configuration, outcome: Outcome) -> None:
    """Refuses an outcome that contradicts itself.

    Raises:
        ObservationError: Saying what was expected in its place.
    """
    if not isinstance(configuration, Configuration):
        raise ObservationError(f"expected a Configuration, got {configuration!r}")
    if not isinstance(outcome, Outcome) or not isinstance(outcome.status, Status):
        raise ObservationError(f"{configuration}: expected an Outcome, got {outcome!r}")
    for name in FIELDS:
        value = getattr(outcome, name)
        if not isinstance(value, Real | Status | Source) or not _is_float(value):
            raise ObservationError(f"{configuration}: {name}: expected a number, got {value!r}")
    for contradiction in (*_in_throughput(outcome), *_in_memory(outcome)):
        raise ObservationError(f"{configuration}: with status {outcome.status} {contradiction}")


def _is_float(value: object) -> bool:
    """Whether a number of Python, which may have any length, is in the range of a float."""
    return not isinstance(value, int) or abs(value) < 2**63


def _in_throughput(outcome: Outcome) -> Iterator[str]:
    throughput, status = outcome.throughput, outcome.status
    if status is Status.OK and np.isnan(throughput):
        yield (
            "expected a throughput, got nan; "
            "try status oom, failed, crashed or timeout for a run that gave none"
        )
    if not np.isnan(throughput) and not MIN_THROUGHPUT <= throughput <= MAX_THROUGHPUT:
        yield (
            f"expected a throughput between {MIN_THROUGHPUT:g} and {MAX_THROUGHPUT:g} "
            f"iterations/s, got {throughput:g}"
        )
    is_imputed = outcome.throughput_source is Source.IMPUTED
    if not np.isnan(throughput) and not (status.is_timed or (status.is_infeasible and is_imputed)):
        yield (
            f"expected no throughput (nan){' or an imputed one' if status.is_infeasible else ''}, "
            f"got {throughput:g} marked {outcome.throughput_source}"
        )


def _in_memory(outcome: Outcome) -> Iterator[str]:
    margin, peak, status = outcome.memory_margin, outcome.peak_memory_gib, outcome.status
    if np.isinf(margin) or margin < -1.0:
        yield f"expected a memory margin of at least -1, finite or nan, got {margin:g}"
    if status is Status.OK and margin > 0.0:
        yield f"expected a memory margin of at most 0, as the run fitted, got {margin:g}"
    if status is Status.OOM and margin < 0.0:
        yield f"expected a memory margin of at least 0, as the run did not fit, got {margin:g}"
    if peak <= 0.0 or (status is Status.OK and np.isinf(peak)):
        yield f"expected a positive finite peak memory in GiB or nan, got {peak:g}"
