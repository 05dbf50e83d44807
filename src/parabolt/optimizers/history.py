"""What an optimizer has been told, as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parabolt.errors import ObservationError
from parabolt.outcome import Outcomes, Source, Status

if TYPE_CHECKING:
    from parabolt.outcome import BoolArray, FloatArray, IntArray, Outcome
    from parabolt.space.configuration import Configuration


class History:
    """Observations in the order they were told. Arrays have one entry per observation."""

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._outcomes: list[Outcome] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, row: int, configuration: Configuration, outcome: Outcome) -> None:
        """Appends the outcome of candidate `row`.

        Raises:
            ObservationError: If the outcome contradicts itself.
        """
        _check(configuration, outcome)
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
        """Margin as told; NaN where unknown."""
        return np.array([o.memory_margin for o in self._outcomes], dtype=np.float64)

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


def _check(configuration: Configuration, outcome: Outcome) -> None:
    throughput, status = outcome.throughput, outcome.status
    if status is Status.OK and not np.isfinite(throughput):
        raise ObservationError(
            f"{configuration}: expected a finite throughput with status ok, got {throughput}; "
            "try status oom, crashed or timeout for a run that gave none"
        )
    if status.is_infeasible and not (
        np.isnan(throughput)
        or (np.isfinite(throughput) and outcome.throughput_source is Source.IMPUTED)
    ):
        raise ObservationError(
            f"{configuration}: expected no throughput (NaN) or an imputed one with status "
            f"{status}, got {throughput} marked {outcome.throughput_source}"
        )
    if np.isinf(outcome.memory_margin):
        raise ObservationError(
            f"{configuration}: expected a finite memory margin or NaN, got {outcome.memory_margin}"
        )
