"""litgpt (before 2024 lit-gpt): its log, which times micro-batches."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from parabolt.frameworks.framework import Framework
from parabolt.frameworks.log_format import LogFormat, LogReader, MemoryRecord, StepRecord
from parabolt.frameworks.measurements import ReportError
from parabolt.frameworks.quantities import MEMORY_GIB, memory_gib, quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from parabolt.frameworks.log_format import Record
    from parabolt.frameworks.log_line import LogLine
    from parabolt.instances.specs import Instance

_LINE = re.compile(
    r"\biter (?P<iteration>\d{1,12}) (?P<bar>\| )?step (?P<step>\d{1,12})(?P<colon>:)?.{0,200}?"
    r"\biter time: (?P<time>[\d.,]{1,20} ?[a-z]{1,3})(?P<is_step> \((?:opt(?:imizer)?\.)?step\))?",
    re.IGNORECASE,
)
_PEAK = re.compile(r"\b[Mm]emory [Uu]sed\s{0,8}: ([\d.,]{1,20} [A-Za-z]{1,3})")


class LitgptReader(LogReader):
    """litgpt's line per log interval: the time of one micro-batch.

    The time of a step is the sum over its micro-batches, known where all of them are printed: with
    one micro-batch per step, or with a log interval of 1 in fine-tuning. Steps of which only a part
    is printed are refused at the end. Memory is in units of 1e9 bytes.
    """

    words = ("iter time", "emory used", "emory Used")

    def __init__(self, instance: Instance) -> None:
        super().__init__(instance)
        self._seconds: dict[int, float] = {}
        self._n_steps = 0
        self._partial = ""

    def read(self, line: LogLine) -> Iterator[Record]:
        """See `LogReader.read`."""
        if found := _LINE.search(line.text):
            # The first wording, `iter 3 step 1: loss`, counts iterations from 0.
            is_first = found["colon"] is not None and found["bar"] is None
            iteration = int(found["iteration"]) + is_first
            self._seconds[iteration] = quantity(found["time"], {"ms": 1e-3, "s": 1.0})
            if found["is_step"]:
                yield from self._step(int(found["step"]), iteration)
        found = _PEAK.search(line.text)
        if found and (gib := memory_gib(found[1], MEMORY_GIB)):
            yield MemoryRecord(gib)

    def _step(self, step: int, iteration: int) -> Iterator[Record]:
        n_micro = iteration // max(step, 1)
        parts = [self._seconds.get(iteration - i) for i in range(n_micro)]
        known = [seconds for seconds in parts if seconds is not None]
        self._seconds.clear()
        if len(known) == n_micro:
            self._n_steps += 1
            yield StepRecord(step, sum(known))
        else:
            self._partial = f"{len(known)} of the {n_micro} micro-batches of step {step}"

    def end(self) -> tuple[Record, ...]:
        """See `LogReader.end`.

        Raises:
            ReportError: If no step was printed whole.
        """
        if self._partial and not self._n_steps:
            raise ReportError(
                f"litgpt printed {self._partial}, whose time therefore isn't known; try one "
                "micro-batch per step, or to report steps yourself"
            )
        return ()


LITGPT = Framework(
    name="litgpt",
    title="litgpt",
    version="",
    documentation="https://github.com/Lightning-AI/litgpt",
    log=LogFormat(LitgptReader),
)
