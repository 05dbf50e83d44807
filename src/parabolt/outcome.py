"""What trying a configuration gives: the one currency between problems, trials and optimizers.

`Outcome` is one, `Outcomes` are n of them as arrays (n,), which are read-only. The fields stand
once, in `Outcome`: every file and command that holds outcomes takes names and values from
`to_record` and `from_record` (JSON) or from `to_columns` and `from_columns` (tables).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
CodeArray = npt.NDArray[np.uint8]

#: Bytes of a GiB, the unit of every memory figure in this package.
GIB = 2.0**30

#: GiB of a GB of 10^9 bytes.
GIB_PER_GB = 1e9 / GIB

#: Margin that stands for an out-of-memory failure, which has no magnitude: the process dies before
#: it reports memory (BoLT benchmark, arXiv 2605.17000).
OOM_MARGIN = 0.2


class Status(StrEnum):
    """How a trial ended, and what that says of its configuration.

    Attributes:
        OK: The run finished.
        OOM: It ran out of memory.
        CRASHED: It ended with an error that says nothing of memory.
        TIMEOUT: It hit its time limit.
        STOPPED: It was stopped early, since it was too slow to beat the best.
        FAILED: A published run did not finish; whether for memory or a crash isn't recorded.
        INVALID: The framework rejects the configuration.
        NODE: Hardware, network or the scheduler ended it; the configuration had no part in it.
    """

    OK = "ok"
    OOM = "oom"
    CRASHED = "crashed"
    TIMEOUT = "timeout"
    STOPPED = "stopped"
    FAILED = "failed"
    INVALID = "invalid"
    NODE = "node"

    @property
    def is_feasible(self) -> bool:
        """Whether the run finished."""
        return self is Status.OK

    @property
    def is_infeasible(self) -> bool:
        """Whether the configuration is known not to run on this instance."""
        return self in (Status.OOM, Status.FAILED)

    @property
    def is_definite(self) -> bool:
        """Whether it is known if the configuration runs; anything else says nothing of that."""
        return self.is_feasible or self.is_infeasible

    @property
    def is_timed(self) -> bool:
        """Whether steps were timed: the run finished, or was stopped early as too slow to win."""
        return self in (Status.OK, Status.STOPPED)


class Source(StrEnum):
    """How a figure is known. Only `measured` comes from a run of that very configuration."""

    NONE = "none"
    MEASURED = "measured"
    INTERPOLATED = "interpolated"
    IMPUTED = "imputed"
    SIMULATED = "simulated"


STATUSES: tuple[Status, ...] = tuple(Status)
SOURCES: tuple[Source, ...] = tuple(Source)
OK, OOM, FAILED = (STATUSES.index(s) for s in (Status.OK, Status.OOM, Status.FAILED))


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What one trial of a configuration gave. NaN equals NaN.

    Attributes:
        status: How the trial ended.
        throughput: Iterations per second; NaN unless there is a figure. Of a configuration that
            does not run it is finite only if `throughput_source` says `imputed`.
        peak_memory_gib: Largest peak memory over the GPUs in GiB; inf when out of memory.
        memory_margin: peak/capacity - 1: negative if and only if the run fits. `OOM_MARGIN` when
            out of memory; NaN when unknown.
        wall_time_s: Duration of the trial in seconds; NaN when unknown.
        throughput_source: How the throughput is known.
        memory_source: How the peak memory is known.
    """

    status: Status
    throughput: float = float("nan")
    peak_memory_gib: float = float("nan")
    memory_margin: float = float("nan")
    wall_time_s: float = float("nan")
    throughput_source: Source = Source.NONE
    memory_source: Source = Source.NONE

    def __eq__(self, other: object) -> bool:
        return self.to_record() == other.to_record() if isinstance(other, Outcome) else False

    def __hash__(self) -> int:
        return hash(tuple(self.to_record().values()))

    @property
    def is_feasible(self) -> bool:
        """Whether the run finished."""
        return self.status.is_feasible

    @property
    def slack(self) -> float:
        """The negated memory margin: positive if and only if the run fits."""
        return -self.memory_margin

    def to_record(self) -> dict[str, str | float | None]:
        """The fields by name for JSON, which has no NaN (here null) and no infinity ("inf")."""
        return {name: _to_json(getattr(self, name)) for name in FIELDS}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Outcome:
        """The inverse of `to_record`; a field that is absent is unknown.

        Raises:
            KeyError: If there is no status.
            TypeError: If a value has another type than `to_record` gives.
            ValueError: If a word or a number isn't one.
        """
        names = ["status", *(name for name in FIELDS[1:] if name in record)]
        return cls(**{name: _from_json(name, record[name]) for name in names})

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
        return cls(Status.OOM, peak_memory_gib=float("inf"), memory_margin=OOM_MARGIN)


#: The fields of an outcome, in order.
FIELDS: tuple[str, ...] = tuple(field.name for field in fields(Outcome))

#: The words of the fields that hold one; all other fields hold a float.
_WORDS: dict[str, tuple[StrEnum, ...]] = {
    "status": STATUSES,
    "throughput_source": SOURCES,
    "memory_source": SOURCES,
}


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Outcomes of n configurations as read-only arrays of shape (n,). NaN equals NaN.

    Attributes:
        status: Index into `STATUSES`, uint8.
        throughput: Iterations per second, float64; see `Outcome`.
        peak_memory_gib: GiB, float64.
        memory_margin: Fraction of the capacity, float64.
        wall_time_s: Seconds, float64.
        throughput_source: Index into `SOURCES`, uint8.
        memory_source: Index into `SOURCES`, uint8.
    """

    status: CodeArray
    throughput: FloatArray
    peak_memory_gib: FloatArray
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
        return (getattr(self, name) for name in FIELDS)

    def __len__(self) -> int:
        return len(self.status)

    def __getitem__(self, index: int) -> Outcome:
        row: dict[str, Any] = {name: getattr(self, name)[index].item() for name in FIELDS}
        return Outcome(**{n: _WORDS[n][row[n]] if n in _WORDS else row[n] for n in FIELDS})

    def __iter__(self) -> Iterator[Outcome]:
        return (self[i] for i in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Outcomes):
            return False
        pairs = zip(self._arrays(), other._arrays(), strict=True)
        return all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)

    def __hash__(self) -> int:
        return hash(tuple(array.tobytes() for array in self._arrays()))

    def take(self, rows: IntArray) -> Outcomes:
        """The outcomes at `rows` (m,), in that order, as copies."""
        # Fields differ in dtype, which a generator of all of them can't say.
        return Outcomes(*(array[rows] for array in self._arrays()))  # type: ignore[arg-type]  # see above

    @property
    def is_feasible(self) -> BoolArray:
        """Whether each run finished, (n,) bool."""
        return np.equal(self.status, OK)

    @property
    def is_infeasible(self) -> BoolArray:
        """Whether each configuration is known not to run, (n,) bool; see `Status`."""
        return self._are([status.is_infeasible for status in STATUSES])

    @property
    def is_timed(self) -> BoolArray:
        """Whether steps of each run were timed, (n,) bool; see `Status`."""
        return self._are([status.is_timed for status in STATUSES])

    @property
    def is_oom(self) -> BoolArray:
        """Whether each run ran out of memory, (n,) bool."""
        return np.equal(self.status, OOM)

    def _are(self, by_code: list[bool]) -> BoolArray:
        return np.array(by_code)[self.status]

    @property
    def slack(self) -> FloatArray:
        """Negated memory margins (n,): positive if and only if the run fits."""
        return -self.memory_margin

    def to_columns(self) -> dict[str, list[str] | FloatArray]:
        """The fields by name for a table: lists of words, and arrays of floats."""
        columns = {name: getattr(self, name) for name in FIELDS}
        for name, words in _WORDS.items():
            columns[name] = [str(words[code]) for code in columns[name]]
        return columns

    @classmethod
    def from_columns(cls, columns: Mapping[str, Sequence[Any] | npt.NDArray[Any]]) -> Outcomes:
        """The inverse of `to_columns`; other columns are ignored; one that is absent is unknown.

        Raises:
            KeyError: If there is no status.
            ValueError: If a word or a number isn't one.
        """
        n = len(columns["status"])
        unknown: dict[str, list[Any]] = {
            name: [str(Source.NONE) if name in _WORDS else math.nan] * n for name in FIELDS
        }
        return cls(**{name: _array(name, columns.get(name, unknown[name])) for name in FIELDS})

    @classmethod
    def of(cls, outcomes: Sequence[Outcome]) -> Outcomes:
        """The arrays of a sequence of single outcomes."""
        return cls.from_columns({name: [getattr(o, name) for o in outcomes] for name in FIELDS})


def _array(name: str, values: Sequence[Any] | npt.NDArray[Any]) -> npt.NDArray[Any]:
    if name not in _WORDS:
        return np.array(values, dtype=np.float64)
    return np.array([_code(name, value) for value in values], dtype=np.uint8)


def _code(name: str, word: object) -> int:
    words = _WORDS[name]
    if word not in words:
        raise ValueError(f"{name}: expected one of {', '.join(words)}, got {word!r}")
    return words.index(word)


def _to_json(value: str | float) -> str | float | None:
    if isinstance(value, str):
        return str(value)
    if math.isnan(value):
        return None
    return float(value) if math.isfinite(value) else str(value)


def _from_json(name: str, value: Any) -> Any:
    if name in _WORDS:
        return _WORDS[name][_code(name, value)]
    return math.nan if value is None else float(value)
