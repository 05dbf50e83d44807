"""What trying a configuration gives: the one currency between problems, trials and optimizers.

Symbols: n is the number of outcomes; arrays are (n,) and read-only.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
CodeArray = npt.NDArray[np.uint8]

#: Margin that stands for an out-of-memory failure, which has no magnitude: the process dies before
#: it reports memory (BoLT benchmark, arXiv 2605.17000).
OOM_MARGIN = 0.2


class Status(StrEnum):
    """How a trial ended."""

    OK = "ok"
    OOM = "oom"
    CRASHED = "crashed"
    TIMEOUT = "timeout"
    STOPPED = "stopped"


class Source(StrEnum):
    """How a figure is known. Only `measured` comes from a run of that very configuration."""

    NONE = "none"
    MEASURED = "measured"
    INTERPOLATED = "interpolated"
    IMPUTED = "imputed"
    SIMULATED = "simulated"


STATUSES: tuple[Status, ...] = tuple(Status)
SOURCES: tuple[Source, ...] = tuple(Source)
OK, OOM, STOPPED = (STATUSES.index(s) for s in (Status.OK, Status.OOM, Status.STOPPED))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one trial of a configuration gave.

    Attributes:
        status: How the trial ended.
        throughput: Iterations per second; NaN unless there is a figure. For an `oom` it is finite
            only if `throughput_source` says `imputed`.
        peak_memory_gb: Largest peak memory over the GPUs in GB; inf when out of memory.
        memory_margin: peak/capacity - 1: negative if and only if the run fits. `OOM_MARGIN` when
            out of memory; NaN when unknown.
        wall_time_s: Duration of the trial in seconds; NaN when unknown.
        throughput_source: How the throughput is known.
        memory_source: How the peak memory is known.
    """

    status: Status
    throughput: float = float("nan")
    peak_memory_gb: float = float("nan")
    memory_margin: float = float("nan")
    wall_time_s: float = float("nan")
    throughput_source: Source = Source.NONE
    memory_source: Source = Source.NONE

    @property
    def is_feasible(self) -> bool:
        """Whether the run finished."""
        return self.status is Status.OK

    @property
    def slack(self) -> float:
        """The negated memory margin: positive if and only if the run fits."""
        return -self.memory_margin

    @classmethod
    def ok(cls, throughput: float, *, memory_margin: float = float("nan")) -> Outcome:
        """The outcome of a finished run that was measured at `throughput` iterations per second."""
        return cls(
            Status.OK,
            throughput,
            memory_margin=memory_margin,
            throughput_source=Source.MEASURED,
        )

    @classmethod
    def oom(cls) -> Outcome:
        """The outcome of a run that ran out of memory."""
        return cls(Status.OOM, peak_memory_gb=float("inf"), memory_margin=OOM_MARGIN)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Outcomes of n configurations as read-only arrays of shape (n,).

    Attributes:
        status: Index into `STATUSES`, uint8.
        throughput: Iterations per second, float64; see `Outcome`.
        peak_memory_gb: GB, float64.
        memory_margin: Fraction of the capacity, float64.
        wall_time_s: Seconds, float64.
        throughput_source: Index into `SOURCES`, uint8.
        memory_source: Index into `SOURCES`, uint8.
    """

    status: CodeArray
    throughput: FloatArray
    peak_memory_gb: FloatArray
    memory_margin: FloatArray
    wall_time_s: FloatArray
    throughput_source: CodeArray
    memory_source: CodeArray

    def __post_init__(self) -> None:
        for array in self._arrays():
            array.flags.writeable = False

    def __reduce__(self) -> tuple[object, ...]:
        return Outcomes, tuple(self._arrays())  # through __init__, so that copies are read-only too

    def _arrays(self) -> Iterator[npt.NDArray[np.generic]]:
        return (getattr(self, f.name) for f in fields(self))

    def __len__(self) -> int:
        return len(self.status)

    def __getitem__(self, index: int) -> Outcome:
        return Outcome(
            STATUSES[self.status[index]],
            float(self.throughput[index]),
            float(self.peak_memory_gb[index]),
            float(self.memory_margin[index]),
            float(self.wall_time_s[index]),
            SOURCES[self.throughput_source[index]],
            SOURCES[self.memory_source[index]],
        )

    def __iter__(self) -> Iterator[Outcome]:
        return (self[i] for i in range(len(self)))

    def take(self, rows: IntArray) -> Outcomes:
        """The outcomes at `rows` (m,), in that order, as copies."""
        # Fields differ in dtype, which a generator of all of them can't say.
        return Outcomes(*(array[rows] for array in self._arrays()))  # type: ignore[arg-type]  # see above

    @property
    def is_feasible(self) -> BoolArray:
        """Whether each run finished, (n,) bool."""
        return np.equal(self.status, OK)

    @property
    def slack(self) -> FloatArray:
        """Negated memory margins (n,): positive if and only if the run fits."""
        return -self.memory_margin

    @classmethod
    def of(cls, outcomes: Sequence[Outcome]) -> Outcomes:
        """The arrays of a sequence of single outcomes."""
        return cls(
            np.array([STATUSES.index(o.status) for o in outcomes], dtype=np.uint8),
            np.array([o.throughput for o in outcomes], dtype=np.float64),
            np.array([o.peak_memory_gb for o in outcomes], dtype=np.float64),
            np.array([o.memory_margin for o in outcomes], dtype=np.float64),
            np.array([o.wall_time_s for o in outcomes], dtype=np.float64),
            np.array([SOURCES.index(o.throughput_source) for o in outcomes], dtype=np.uint8),
            np.array([SOURCES.index(o.memory_source) for o in outcomes], dtype=np.uint8),
        )
