"""What a data-set card states of a table, computed from its rows, block by block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parabolt.outcome import FAILED, OK
from parabolt.tables.reading.status import run_status
from parabolt.tables.schema import NOT_MEASURED, PROVENANCE

if TYPE_CHECKING:
    from parabolt.instances.specs import Instance
    from parabolt.outcome import BoolArray
    from parabolt.tables.reading.conversion import Block


@dataclass(frozen=True)
class TableFacts:
    """The figures of a card.

    Attributes:
        n_rows: Rows.
        n_feasible: Rows whose run finished.
        n_failed: Rows whose run did not finish, for memory or a crash: it isn't recorded which.
        largest_peak_mem: Largest peak memory of a finished run, in the unit of the column; NaN
            where none finished.
        best_row: Row of the largest throughput, the first of several; -1 where none finished.
        best_throughput: Its throughput in iterations/s; NaN where none finished.
        best_peak_mem: Its peak memory, likewise.
        best_settings: Its searched knobs: column and raw value, in canonical order.
        n_not_measured: Finished runs whose throughput or peak memory is interpolated or simulated.
    """

    n_rows: int = 0
    n_feasible: int = 0
    n_failed: int = 0
    largest_peak_mem: float = float("nan")
    best_row: int = -1
    best_throughput: float = float("nan")
    best_peak_mem: float = float("nan")
    best_settings: tuple[tuple[str, int | str], ...] = ()
    n_not_measured: int = 0

    @property
    def n_infeasible(self) -> int:
        """Rows whose run did not finish."""
        return self.n_rows - self.n_feasible

    @property
    def n_oom(self) -> int:
        """Rows whose run ran out of memory."""
        return self.n_infeasible - self.n_failed

    @classmethod
    def of(cls, block: Block, instance: Instance) -> TableFacts:
        """The facts of some rows; cells that couldn't be converted don't count as measured."""
        data = block.data
        needed = {"ran_successfully", "throughput_mean", "peak_mem"}
        if not needed <= set(data.column_names) or data.num_rows == 0:
            return cls(n_rows=data.num_rows)
        status = run_status(data)
        feasible, n_failed = np.equal(status, OK), int(np.equal(status, FAILED).sum())
        throughput, peak = (
            np.where(feasible & block.is_sound, data.column(name).to_numpy(), np.nan)
            for name in ("throughput_mean", "peak_mem")
        )
        if np.isnan(throughput).all() or np.isnan(peak).all():
            return cls(len(feasible), int(feasible.sum()), n_failed)
        best = int(np.nanargmax(throughput))
        names = [a.column for a in instance.encoding.axes if a.column in data.column_names]
        return cls(
            n_rows=len(feasible),
            n_feasible=int(feasible.sum()),
            n_failed=n_failed,
            largest_peak_mem=float(np.nanmax(peak)),
            best_row=int(block.rows[best]),
            best_throughput=float(throughput[best]),
            best_peak_mem=float(peak[best]),
            best_settings=tuple((name, data.column(name)[best].as_py()) for name in names),
            n_not_measured=int((feasible & _is_not_measured(data)).sum()),
        )

    def joined(self, later: TableFacts) -> TableFacts:
        """The facts of these rows and of later ones."""
        best = later if later.best_throughput > self.best_throughput or self.best_row < 0 else self
        return TableFacts(
            n_rows=self.n_rows + later.n_rows,
            n_feasible=self.n_feasible + later.n_feasible,
            n_failed=self.n_failed + later.n_failed,
            largest_peak_mem=float(np.fmax(self.largest_peak_mem, later.largest_peak_mem)),
            best_row=best.best_row,
            best_throughput=best.best_throughput,
            best_peak_mem=best.best_peak_mem,
            best_settings=best.best_settings,
            n_not_measured=self.n_not_measured + later.n_not_measured,
        )


def _is_not_measured(data: pa.Table) -> BoolArray:
    words = pa.array(list(NOT_MEASURED))
    is_not = np.zeros(data.num_rows, dtype=np.bool_)
    for column in PROVENANCE:
        if column.name in data.column_names:
            is_not |= pc.is_in(data.column(column.name), words).to_numpy()
    return is_not
