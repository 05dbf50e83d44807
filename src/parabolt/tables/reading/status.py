"""How the run of each row ended, from the columns `ran_successfully` and `status`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from parabolt.outcome import FAILED, OK, OOM, Status

if TYPE_CHECKING:
    import pyarrow as pa

    from parabolt.outcome import BoolArray, CodeArray

#: The words of the column `status`.
STATUS_WORDS: dict[str, int] = {Status.OK: OK, Status.OOM: OOM, Status.FAILED: FAILED}


def run_status(data: pa.Table) -> CodeArray:
    """Codes (n,) of how each run ended; see `parabolt.outcome.STATUSES`.

    A run that did not finish ran out of memory, unless the column `status` says `failed`: the
    source doesn't tell whether memory or a crash was the reason.
    """
    finished = finished_runs(data)
    failed = np.zeros(len(finished), dtype=np.bool_)
    if "status" in data.column_names:
        is_failed = pc.equal(data.column("status"), str(Status.FAILED))
        failed = pc.fill_null(is_failed, fill_value=False).to_numpy()
    return np.where(finished, OK, np.where(failed, FAILED, OOM)).astype(np.uint8)


def finished_runs(data: pa.Table) -> BoolArray:
    """Whether the run of each row finished, (n,) bool; not where the cell is empty."""
    ran = pc.fill_null(data.column("ran_successfully"), fill_value=False)
    return np.asarray(ran.to_numpy(), dtype=np.bool_)
