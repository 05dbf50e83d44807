"""The landscape of a problem: what each candidate gives, and where it stands in a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from parabolt.outcome import STATUSES, Status

if TYPE_CHECKING:
    from parabolt.experiments.run import Run
    from parabolt.instances.search_space import SearchSpace
    from parabolt.outcome import FloatArray, IntArray, Outcomes
    from parabolt.problems.problem import Problem
    from parabolt.space.axis import Axis

#: Statuses of candidates that don't run, in words.
OUT_OF_MEMORY, UNKNOWN_FAILURE = "out of memory", "failed (memory or a crash)"
_ENDINGS = {Status.OOM: OUT_OF_MEMORY, Status.FAILED: UNKNOWN_FAILURE}

#: Knobs that say how the GPUs are shared out; the others say how each share works.
SHARES = ("dp", "tp", "pp", "cp")

#: Of the space between two values of a knob, the part over which lines of one value are spread, and
#: the most that it may be of the whole axis.
_SPREAD, _MOST_SPREAD = 0.7, 0.3


@dataclass(frozen=True, eq=False)
class Landscape:
    """What every candidate of a problem gives. Arrays have one row per candidate, n in all.

    Attributes:
        space: Instance and candidates.
        positions: Number of each candidate's value among those of each searched knob (n, a).
        outcomes: What each gives, noiseless.
    """

    space: SearchSpace
    positions: IntArray
    outcomes: Outcomes

    def __len__(self) -> int:
        return len(self.space)

    @classmethod
    def of(cls, problem: Problem) -> Landscape:
        """The landscape of a problem."""
        encoded = problem.space.encoded
        positions = problem.instance.encoding.positions(encoded)
        return cls(problem.space, positions, problem.evaluate_many(encoded))

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The searched knobs with their values."""
        return tuple(self.space.instance.encoding.axes)

    @property
    def capacity_gib(self) -> float:
        """Memory of a GPU, in GiB."""
        return self.space.instance.cluster.memory_gib

    @property
    def best(self) -> int:
        """Row of the candidate with the highest throughput."""
        values = np.where(self.outcomes.is_feasible, self.outcomes.throughput, -np.inf)
        return int(np.argmax(values))

    def text(self, row: int) -> str:
        """Values of a candidate's searched knobs in words, such as `dp16 tp2`."""
        return " ".join(
            axis.knob.text(axis.values[position])
            for axis, position in zip(self.axes, self.positions[row].tolist(), strict=True)
        )

    def endings(self) -> dict[str, IntArray]:
        """Why candidates don't run, in words, and rows of each (m,) ascending; none is empty."""
        statuses = self.outcomes.status
        found = {
            _ENDINGS.get(status, str(status)): np.flatnonzero(statuses == code)
            for code, status in enumerate(STATUSES)
            if status is not Status.OK
        }
        return {words: rows for words, rows in found.items() if len(rows)}

    def classes(self) -> list[tuple[str, IntArray]]:
        """Candidates by how good they are, in words, worst first; none of them is empty."""
        order = np.argsort(-np.where(self.outcomes.is_feasible, self.outcomes.throughput, -np.inf),
                           kind="stable")  # fmt: skip
        n_feasible = int(self.outcomes.is_feasible.sum())
        n_best, n_good = max(1, n_feasible // 100), max(1, n_feasible // 10)
        parts = [
            *self.endings().items(),
            ("other feasible", order[n_good:n_feasible]),
            ("best 10 %", order[n_best:n_good]),
            ("best 1 %", order[: min(n_best, n_feasible)]),
        ]
        return [(label, rows) for label, rows in parts if len(rows)]


@dataclass(frozen=True, eq=False)
class Grid:
    """Candidates as cells of a table: how the GPUs are shared out, against the other knobs.

    Attributes:
        column_knobs: Knobs of the columns.
        row_knobs: Knobs of the rows.
        columns: Label of each column: values in the order of the knobs, such as `16 1 4 1`.
        rows: Label of each row.
        x: Column of each candidate (n,).
        y: Row of each candidate (n,).
    """

    column_knobs: tuple[str, ...]
    row_knobs: tuple[str, ...]
    columns: list[str]
    rows: list[str]
    x: IntArray
    y: IntArray


def grid(landscape: Landscape) -> Grid:
    """The cells of a landscape; columns and rows ascend by their values."""
    names = [axis.knob.name for axis in landscape.axes]
    shared = [i for i, name in enumerate(names) if name in SHARES]
    others = [i for i, name in enumerate(names) if name not in SHARES]
    columns, x = _distinct(landscape, shared)
    rows, y = _distinct(landscape, others)
    return Grid(
        column_knobs=tuple(names[i] for i in shared),
        row_knobs=tuple(names[i] for i in others),
        columns=columns,
        rows=rows,
        x=x,
        y=y,
    )


def picture_of(places: Grid, values: FloatArray) -> FloatArray:
    """Values (n,) as a picture (rows, columns); NaN where there is no candidate."""
    picture = np.full((len(places.rows), len(places.columns)), np.nan)
    picture[places.y, places.x] = values
    return picture


def heights(landscape: Landscape) -> FloatArray:
    """Where each candidate's line crosses the axis of each knob (n, a), between 0 and 1.

    Values stand at even distances. The lines of one value lie side by side around it, the slowest
    lowest, so that each can be told from the others.
    """
    order = np.argsort(np.argsort(np.nan_to_num(landscape.outcomes.throughput, nan=-1.0)))
    places = np.zeros(landscape.positions.shape)
    for column, axis in enumerate(landscape.axes):
        gap = 1.0 / (len(axis.values) - 1)
        for position in range(len(axis.values)):
            rows = np.flatnonzero(landscape.positions[:, column] == position)
            ranks = np.argsort(np.argsort(order[rows]))
            offset = ranks / max(1, len(rows) - 1) - 0.5 if len(rows) > 1 else 0.0
            places[rows, column] = position * gap + min(_SPREAD * gap, _MOST_SPREAD) * offset
    return places


def improvements(run: Run) -> list[int]:
    """Evaluations of a run, from 0, that were better than all before."""
    best, found = 0.0, []
    for number, outcome in enumerate(run.outcomes):
        if outcome.is_feasible and outcome.throughput > best:
            best = outcome.throughput
            found.append(number)
    return found


def _distinct(landscape: Landscape, axes: list[int]) -> tuple[list[str], IntArray]:
    """Labels of the combinations of some axes' values, and the number of each candidate's (n,)."""
    if not axes:
        return ["all"], np.zeros(len(landscape), dtype=np.int64)
    found, number = np.unique(landscape.positions[:, axes], axis=0, return_inverse=True)
    words = [landscape.axes[i].words for i in axes]
    labels = [
        " ".join(own[position] for own, position in zip(words, row, strict=True))
        for row in found.tolist()
    ]
    return labels, number.ravel()
