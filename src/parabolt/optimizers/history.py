"""What an optimizer has been told, as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parabolt.outcome import OOM_MARGIN, Outcomes

if TYPE_CHECKING:
    from parabolt.outcome import BoolArray, FloatArray, IntArray, Outcome


class History:
    """Observations in the order they were told. Arrays have one entry per observation."""

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._outcomes: list[Outcome] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, row: int, outcome: Outcome) -> None:
        """Appends the outcome of candidate `row`, which `check_observation` has let pass."""
        self._rows.append(row)
        self._outcomes.append(outcome)

    @property
    def rows(self) -> IntArray:
        """Candidate row numbers."""
        return np.array(self._rows, dtype=np.int64)

    @property
    def is_feasible(self) -> BoolArray:
        """Whether the run finished."""
        return np.array([o.status.is_feasible for o in self._outcomes], dtype=bool)

    @property
    def is_timed(self) -> BoolArray:
        """Whether the run was timed: it finished, or was stopped early as too slow to win."""
        return np.array([o.status.is_timed for o in self._outcomes], dtype=bool)

    @property
    def is_infeasible(self) -> BoolArray:
        """Whether the configuration is known not to run, for lack of memory or as published."""
        return np.array([o.status.is_infeasible for o in self._outcomes], dtype=bool)

    @property
    def is_informative(self) -> BoolArray:
        """Whether the outcome says something of the configuration; a crash does not."""
        return self.is_timed | self.is_infeasible

    @property
    def throughput(self) -> FloatArray:
        """Iterations/s as told; NaN where there is no figure. Imputed figures are included."""
        return np.array([o.throughput for o in self._outcomes], dtype=np.float64)

    @property
    def memory_margin(self) -> FloatArray:
        """Margin as told; `OOM_MARGIN` where a run died without one, NaN where it is unknown."""
        margin = np.array([o.memory_margin for o in self._outcomes], dtype=np.float64)
        return np.where(self.is_infeasible & np.isnan(margin), OOM_MARGIN, margin)

    @property
    def outcomes(self) -> Outcomes:
        """The outcomes as told."""
        return Outcomes.of(self._outcomes)

    def best_feasible_row(self) -> int | None:
        """The candidate with the highest observed throughput of a finished run; None if none."""
        feasible = self.is_feasible
        if not feasible.any():
            return None
        return int(self.rows[np.argmax(np.where(feasible, self.throughput, -np.inf))])
