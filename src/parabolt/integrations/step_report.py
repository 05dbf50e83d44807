"""The report protocol from within a training loop: what the callbacks of libraries share."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from parabolt.errors import MissingDependencyError
from parabolt.outcome import GIB
from parabolt.trials.measurements import REPORT_VARIABLE

try:
    import torch
except ImportError as error:
    raise MissingDependencyError.of("torch", "torch") from error

if TYPE_CHECKING:
    from collections.abc import Callable


class StepReport:
    """Appends steps and peak memory to the report of the trial that this process belongs to.

    A step lasts from the end of the one before to its own end on the GPU, with the loading of its
    data. Outside a trial, where `PARABOLT_REPORT` isn't set, nothing is written.

    Args:
        clock: Gives the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        path = os.environ.get(REPORT_VARIABLE)
        self._path = Path(path) if path else None
        self._clock = clock
        self._start_s = clock()

    def start(self) -> None:
        """Begins a step here: what was done since the last one belongs to none."""
        if self._path is not None:
            _finish_kernels()
            self._start_s = self._clock()

    def end_step(self, step: int) -> None:
        """Reports a step that ends here, and begins the next one."""
        if self._path is not None:
            _finish_kernels()
            now = self._clock()
            self._write(step=step, seconds=now - self._start_s)
            self._start_s = now

    def end_training(self, rank: int) -> None:
        """Reports the peak memory of this process's GPU, if it has one."""
        if self._path is not None and torch.cuda.is_available():
            self._write(rank=rank, peak_memory_gib=torch.cuda.max_memory_reserved() / GIB)

    def _write(self, **record: float) -> None:
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")


def _finish_kernels() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
