"""Composer, and llm-foundry on it: records of many lines on the console, or a progress bar."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from parabolt.frameworks.framework import Framework
from parabolt.frameworks.log_format import LogFormat, LogReader, MemoryRecord, StepRecord
from parabolt.frameworks.progress_bar import ProgressBarReader
from parabolt.frameworks.quantities import MEMORY_GIB, memory_gib, quantity
from parabolt.outcome import GIB

if TYPE_CHECKING:
    from collections.abc import Iterator

    from parabolt.frameworks.log_format import Record
    from parabolt.frameworks.log_line import LogLine
    from parabolt.instances.specs import Instance

_HEAD = re.compile(
    r"\s{0,12}(?:\[epoch=(?P<epoch>\d{1,9})\])?\[(?P<unit>[a-z]{2,12})=(?P<at>\d{1,15})\b"
)
_METRIC = re.compile(
    r"(?:^|\s)(?:Train )?(?P<name>[a-z_]{1,20}/[\w/]{1,60}): (?P<value>[^\s]{1,40})"
)
_WINDOW = re.compile(r"\s{1,40}window_size: (\d{1,6})\s{0,4}$")
_PEAKS = ("memory/peak_reserved_mem", "memory/max_reserved_mem", "memory/peak_allocated_mem")


class ComposerReader(LogReader):
    """Composer's console logger with the speed and the memory monitor.

    A record begins with `[batch=5/100]:` and has a metric per line. `throughput/batches_per_sec` is
    a mean over the last `window_size` batches, printed with four decimals; where these are too few
    digits, samples/s say it better. Memory is in units of 1e9 bytes, in old versions in bytes. A
    log without such records may have a progress bar, which is read instead.
    """

    words = (
        "[epoch=", "[batch=", "[sample=", "[token=", "[iteration=", "[second=",
        "throughput/", "time/", "memory/", "window_size", *ProgressBarReader.words,
    )  # fmt: skip

    def __init__(self, instance: Instance) -> None:
        super().__init__(instance)
        self._bar = ProgressBarReader(instance)
        self._drawn: list[StepRecord] = []
        self._records: dict[str, dict[str, str]] = {}
        self._window: int | None = None
        self._first_batch: int | None = None
        self._has_times = False

    def read(self, line: LogLine) -> Iterator[Record]:
        """See `LogReader.read`."""
        if found := _WINDOW.match(line.text):
            self._window = int(found[1])
        if head := _HEAD.match(line.text):
            yield from self._said(self._records.pop(line.source, {}))
            self._records[line.source] = {"head": head["unit"], "at": head["at"]}
            if head["epoch"]:
                self._records[line.source]["epoch"] = head["epoch"]
        record = self._records.get(line.source)
        if record is not None:
            for metric in _METRIC.finditer(line.text):
                record[metric["name"]] = metric["value"]
        self._drawn += self._bar.read(line)

    def end(self) -> list[Record]:
        """See `LogReader.end`."""
        found = [record for metrics in self._records.values() for record in self._said(metrics)]
        return found if self._has_times else [*found, *self._drawn]

    def _said(self, metrics: dict[str, str]) -> Iterator[Record]:
        """What a finished record says."""
        batch = _batch(metrics)
        if batch is None:
            return
        if self._first_batch is None:
            self._first_batch = batch
        if "throughput/batches_per_sec" in metrics:
            if not self._has_times and self._window is None and batch > self._first_batch == 1:
                self._window = batch - 1  # the first mean is printed when its window is full
            self._has_times = True
            yield StepRecord(batch, self._seconds(metrics), self._window)
        for name in _PEAKS:
            if (gib := _memory_gib(metrics.get(name, ""))) is not None:
                yield MemoryRecord(gib)
                return

    def _seconds(self, metrics: dict[str, str]) -> float:
        batches_per_s = quantity(metrics["throughput/batches_per_sec"])
        seconds = self.iterations_seconds(batches_per_s)
        if "throughput/samples_per_sec" not in metrics:
            return seconds
        samples_per_s = quantity(metrics["throughput/samples_per_sec"])
        n_samples = _samples_per_batch(metrics) or self.instance.workload.batch_size
        agrees = abs(samples_per_s / n_samples - batches_per_s) <= 1e-4
        return n_samples / samples_per_s if agrees and samples_per_s else seconds


def _batch(metrics: dict[str, str]) -> int | None:
    """Number of the batch that a record is of, counted from 1."""
    if "time/batch" in metrics:
        return int(quantity(metrics["time/batch"])) + 1  # as it was when the batch began
    is_counted = metrics.get("head") == "batch" and metrics.get("epoch", "1") in ("0", "1")
    return int(metrics["at"]) if is_counted else None


def _samples_per_batch(metrics: dict[str, str]) -> float | None:
    n_batches, n_samples = (metrics.get(f"time/{name}", "0") for name in ("batch", "sample"))
    return quantity(n_samples) / quantity(n_batches) if quantity(n_batches) else None


def _memory_gib(text: str) -> float | None:
    """Memory in GiB: of a number of bytes, or of one of 1e9 bytes with decimals."""
    if text.isdigit():
        return int(text) / GIB or None
    return memory_gib(f"{text} GB", MEMORY_GIB) or None


COMPOSER = Framework(
    name="composer",
    title="Composer",
    version="",
    documentation="https://docs.mosaicml.com/projects/composer/",
    log=LogFormat(ComposerReader),
)
