"""Step times and memory from the logs of programs that don't speak the protocol.

A format is a small reader with a state: it is shown each line of a log, and says what it found.
What a record means (which steps its figure is the mean of, what several ranks say of one step) is
decided in one place, `Measurements`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from parabolt.frameworks.log_line import log_lines
from parabolt.frameworks.measurements import Measurements, ReportError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from parabolt.frameworks.log_line import LogLine
    from parabolt.instances.specs import Instance


@dataclass(frozen=True)
class StepRecord:
    """The time of a step, or the mean time of several.

    Attributes:
        step: The step, or the last of them.
        seconds: Seconds per step.
        n_steps: How many steps they are; None for all since the record before.
    """

    step: int
    seconds: float
    n_steps: int | None = None


@dataclass(frozen=True)
class MemoryRecord:
    """The peak memory of a GPU so far.

    Attributes:
        gib: Peak memory in GiB; a figure that isn't positive says nothing.
        rank: The GPU's rank; None where the line doesn't say it.
    """

    gib: float
    rank: int | None = None


Record = StepRecord | MemoryRecord


class LogReader(ABC):
    """Reads the log of one run, line by line.

    Args:
        instance: Gives the samples and tokens of a step, and the number of GPUs.
    """

    #: A line without any of these words holds nothing for the reader, and is never shown to it.
    words: tuple[str, ...] = ()

    def __init__(self, instance: Instance) -> None:
        self.instance = instance

    @abstractmethod
    def read(self, line: LogLine) -> Iterator[Record]:
        """What a line says, with the lines before it.

        Raises:
            ReportError: If a figure isn't understood.
        """

    def end(self) -> Iterable[Record]:
        """What is certain only if the log ends here; more lines may follow nevertheless."""
        return ()

    def iterations_seconds(self, iterations_per_s: float) -> float:
        """Seconds of a step at a number of iterations/s."""
        return _inverse(iterations_per_s, 1)

    def samples_seconds(self, samples_per_s: float) -> float:
        """Seconds of a step at a number of samples/s of the whole job."""
        return _inverse(samples_per_s, self.instance.workload.batch_size)

    def tokens_seconds(self, tokens_per_s: float) -> float:
        """Seconds of a step at a number of tokens/s of the whole job."""
        workload = self.instance.workload
        return _inverse(tokens_per_s, workload.batch_size * workload.sequence_length)

    def tokens_per_gpu_seconds(self, tokens_per_s: float) -> float:
        """Seconds of a step at a number of tokens/s per GPU of the job."""
        return self.tokens_seconds(tokens_per_s * self.instance.cluster.n_gpus)


@dataclass(frozen=True)
class LogFormat:
    """A format of logs.

    Attributes:
        reader: Makes a reader for the log of one run.
        has_memory: Whether such a log says the peak memory.
    """

    reader: Callable[[Instance], LogReader]
    has_memory: bool = True

    def read(self, lines: Iterable[str], rank: int, instance: Instance, into: Measurements) -> None:
        """Records all that a log says.

        Args:
            lines: The log, line by line.
            rank: Whose log it is, where a line doesn't say.
            instance: Gives the samples and tokens of a step.
            into: Where it goes.

        Raises:
            ReportError: If a figure isn't understood, or the program began anew.
        """
        reading = LogReading(self, rank, instance)
        reading.feed(lines)
        into.merge(reading.measurements())


class LogReading:
    """A log that is being read, perhaps while it is being written.

    Args:
        log_format: Its format.
        rank: Whose log it is, where a line doesn't say.
        instance: Gives the samples and tokens of a step.
    """

    def __init__(self, log_format: LogFormat, rank: int, instance: Instance) -> None:
        self._reader = log_format.reader(instance)
        self._rank = rank
        self._found = Measurements(is_log=True)
        self._restarts = _Restarts()

    def feed(self, lines: Iterable[str]) -> None:
        """Reads further lines.

        Raises:
            ReportError: If a figure isn't understood, or the program began anew.
        """
        words = self._reader.words
        wanted = (line for line in lines if not words or any(word in line for word in words))
        for line in log_lines(wanted):
            for record in self._reader.read(line):
                rank = line.rank if line.rank is not None else self._rank
                _add(record, rank, self._found, line.raw)
                if isinstance(record, StepRecord):
                    self._restarts.check(record.step, line.source)

    def measurements(self) -> Measurements:
        """What the log says if it ends here.

        Raises:
            ReportError: If it says nothing certain.
        """
        found = Measurements()
        found.merge(self._found)
        for record in self._reader.end():
            _add(record, self._rank, found)
        return found


def _add(record: Record, rank: int, into: Measurements, line: str = "") -> None:
    if isinstance(record, StepRecord):
        into.add_mean(record.step, record.seconds, record.n_steps)
    elif 0.0 < record.gib < float("inf"):
        into.add_memory(rank if record.rank is None else record.rank, record.gib, line)


class _Restarts:
    """Notices that a program began anew within one log.

    A step may stand there several times: once per rank, or redrawn. But a process doesn't go back
    by more than one record, and ranks wait for each other in each step.
    """

    def __init__(self) -> None:
        self._seen: dict[str, list[int]] = {}

    def check(self, step: int, source: str) -> None:
        seen = self._seen.setdefault(source, [])
        if not seen or step > seen[-1]:
            seen.append(step)
        elif len(seen) > 2 and step <= seen[-3]:
            raise ReportError(
                f"step {step} stands in the log again after step {seen[-1]}: "
                "did the program restart itself?"
            )


def _inverse(rate: float, of: float) -> float:
    if not 0.0 < rate < float("inf"):
        raise ReportError(f"expected a positive rate in the log, got {rate}")
    return of / rate
