"""A problem that looks outcomes up in a measured table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parabolt.errors import TableError
from parabolt.problems.problem import Optimum, Problem

if TYPE_CHECKING:
    from parabolt.outcome import IntArray, Outcome, Outcomes
    from parabolt.tables.table import Table


class TabularProblem(Problem):
    """The black box behind a table: noiseless, nothing imputed.

    Args:
        table: The measured table; all its rows are the candidates.

    Raises:
        TableError: If no row of the table is feasible, so that there is no optimum.
    """

    def __init__(self, table: Table) -> None:
        if not table.is_feasible.any():
            raise TableError(f"{table.instance.name}: expected a feasible row, got none")
        self.table = table
        self.name = table.instance.name
        self.version = table.version
        self.content_hash = table.content_hash
        self.space = table.space
        self._outcomes = table.outcomes
        best = int(np.nanargmax(self._outcomes.throughput))
        self.optimum = Optimum(
            value=float(self._outcomes.throughput[best]),
            configuration=self.space.candidates[best],
            provenance=f"best {self._outcomes[best].throughput_source} row of {len(table)}, "
            f"data {self.version}",
        )

    def _evaluate_row(self, row: int) -> Outcome:
        return self._outcomes[row]

    def _evaluate_rows(self, rows: IntArray) -> Outcomes:
        return self._outcomes.take(rows)
