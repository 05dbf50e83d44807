"""What a trial measured: steps and memory as the program reports them, and the statistics.

The protocol: the program appends JSON lines to the file named in the environment variable
`PARABOLT_REPORT`. A line holds `step` with `seconds`, or `rank` with `peak_memory_gib`, or both.

    {"step": 3, "seconds": 0.512}
    {"rank": 2, "peak_memory_gib": 61.25}

The key `peak_memory_gb` of version 0.1 is GB of 10^9 bytes.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from parabolt.frameworks.measurements import ReportError
from parabolt.outcome import GIB_PER_GB

if TYPE_CHECKING:
    from pathlib import Path

    from parabolt.frameworks.measurements import Measurements

#: Seconds of a step that cannot be, and the inverse of those that cannot: ten years.
_LONGEST_S = 3e8

#: The environment variable that names the report.
REPORT_VARIABLE = "PARABOLT_REPORT"


@dataclass(frozen=True)
class Statistics:
    """Statistics of a finished trial, as the columns of a table have them.

    Attributes:
        step_times_s: Seconds of the timed steps.
        throughput: Iterations/s: 1 / mean step time.
        throughput_std: Standard deviation of 1 / step time over the timed steps (m - 1 degrees of
            freedom); NaN for a single step.
        peak_memory_per_gpu_gib: Peak memory of each rank that reported it, by rank, in GiB.
    """

    step_times_s: tuple[float, ...]
    throughput: float
    throughput_std: float
    peak_memory_per_gpu_gib: tuple[float, ...]

    @property
    def peak_memory_gib(self) -> float:
        """Largest peak memory over the GPUs; NaN where none was reported."""
        return max(self.peak_memory_per_gpu_gib, default=math.nan)

    def as_dict(self) -> dict[str, Any]:
        """For JSON, which has no NaN (here null)."""
        spread = self.throughput_std
        return {
            "throughput": self.throughput,
            "throughput_std": None if math.isnan(spread) else spread,
            "step_times_s": list(self.step_times_s),
            "peak_memory_per_gpu_gib": list(self.peak_memory_per_gpu_gib),
        }

    @classmethod
    def of(cls, measurements: Measurements, *, n_warmup: int, n_timed: int) -> Statistics:
        """The statistics of the first `n_timed` steps after `n_warmup` steps.

        Raises:
            ReportError: If there are fewer steps, one is missing, or a time cannot be.
        """
        steps = measurements.timed_steps_s(n_warmup)
        if len(steps) < n_timed:
            raise ReportError(
                f"too few steps: expected {n_warmup} warm-up and {n_timed} timed steps, "
                f"got {measurements.description}"
            )
        t = np.array(steps[:n_timed])
        if not 1.0 / _LONGEST_S <= t.min() <= t.max() <= _LONGEST_S:
            raise ReportError(f"step times of {t.min():g} to {t.max():g} s cannot be")
        memory = measurements.peak_memory_gib
        return cls(
            step_times_s=tuple(t.tolist()),
            throughput=float(1.0 / t.mean()),
            throughput_std=float((1.0 / t).std(ddof=1)) if len(t) > 1 else math.nan,
            peak_memory_per_gpu_gib=tuple(memory[rank] for rank in sorted(memory)),
        )


class ReportReader:
    """Reads a report while it is being written; a line without its end is left for later.

    Args:
        path: The report; it need not exist yet.
        measurements: Where what is read goes.
    """

    def __init__(self, path: Path, measurements: Measurements) -> None:
        self._path = path
        self._measurements = measurements
        self._offset = 0
        self._n_lines = 0

    def read(self) -> None:
        """Reads what has come since the last call.

        Raises:
            ReportError: If the file can't be read, or at the first line that isn't of the protocol.
        """
        try:
            with self._path.open("rb") as file:
                if file.seek(0, 2) < self._offset:
                    raise ReportError("the report became shorter: the program began anew")
                file.seek(self._offset)
                text = file.read()
        except FileNotFoundError:
            return
        except OSError as error:
            raise ReportError(f"cannot read the report: {error.strerror}") from error
        complete = text[: text.rfind(b"\n") + 1]
        self._offset += len(complete)
        for line in complete.splitlines():
            self._n_lines += 1
            if line.strip():
                self._add(line)

    def _add(self, line: bytes) -> None:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            raise ReportError(self._complaint("JSON", line)) from None
        if not isinstance(record, dict):
            raise ReportError(self._complaint("a JSON object", line))
        rank = record.get("rank", 0)
        if _is_number(record.get("peak_memory_gb")):
            record["peak_memory_gib"] = record["peak_memory_gb"] * GIB_PER_GB
        has_step, has_memory = "seconds" in record, "peak_memory_gib" in record
        if not _is_whole(rank) or not (has_step or has_memory):
            raise ReportError(
                self._complaint("step and seconds, or rank and peak_memory_gib", line)
            )
        if has_step:
            step, seconds = record.get("step"), record["seconds"]
            if not _is_whole(step) or not _is_number(seconds):
                raise ReportError(self._complaint("a whole step and its seconds", line))
            self._measurements.add_step(step, float(seconds), rank)
        if has_memory:
            if not _is_number(record["peak_memory_gib"]):
                raise ReportError(self._complaint("a number for peak_memory_gib", line))
            said = line.decode(errors="replace")
            self._measurements.add_memory(rank, float(record["peak_memory_gib"]), said)

    def _complaint(self, expected: str, line: bytes) -> str:
        shown = line[:80].decode(errors="replace")
        return f"unreadable report, line {self._n_lines}: expected {expected}, got {shown!r}"


def _is_whole(value: object) -> TypeGuard[int]:
    return type(value) is int and value >= 0


def _is_number(value: object) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    try:
        float(value)
    except OverflowError:  # JSON has whole numbers of any length
        return False
    return True
