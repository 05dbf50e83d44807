"""nanotron: its rules, and its log with figures of three digits and a letter for thousands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from parabolt.frameworks.framework import Framework
from parabolt.frameworks.log_format import LogFormat, LogReader, MemoryRecord, StepRecord
from parabolt.frameworks.quantities import HUMAN, MEMORY_GIB, memory_gib, quantity
from parabolt.frameworks.rules import (
    kv_heads_divisible,
    sequence_parallel_in_full,
    two_bytes,
    without,
)
from parabolt.outcome import GIB
from parabolt.space.rules import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from parabolt.frameworks.log_format import Record
    from parabolt.frameworks.log_line import LogLine
    from parabolt.instances.specs import Instance


def rules(instance: Instance) -> tuple[Rule, ...]:
    """What `config/config.py`, `parallelism_config.py` and the optimizer of 0.4 accept.

    Blocks go to stages by their cost, so layers need not split evenly.
    """
    return (
        kv_heads_divisible(instance.model),
        sequence_parallel_in_full(),
        Rule(
            "zero_up_to_1",
            ("zero",),
            lambda c: c.zero <= 1,
            lambda c: f"ZeRO {c.zero}: its stages are 0 and 1",
        ),
        two_bytes(),
        *without(
            {
                "chunks": "its schedules have one model chunk per stage",
                "schedule": "its schedules are 1F1B and all forward, all backward",
                "ulysses": "its context parallelism is a ring",
                "shard": "it shards optimizer states over all replicas",
                "offload": "it keeps nothing in the host's memory",
                "first_layers": "blocks go to stages by their cost",
                "last_layers": "blocks go to stages by their cost",
            }
        ),
    )


_ITERATION = re.compile(r"\biteration: (\d{1,12}) / \d")
_TIME = re.compile(r"\b(?:elapsed_)?time_per_iteration_ms: ([^\s|]{1,40})")
_PEAK = re.compile(r"\bPeak reserved: ([\d.,]{1,20}\s?[A-Za-z]{1,3})")
_ROUNDED_PEAK = re.compile(r"\bcuda_max_memory_reserved: ([^\s|]{1,40})")


class NanotronReader(LogReader):
    """nanotron's line per iteration, and its reports of memory.

    `11.5K` ms are 11.5 s, and `520M` bytes are 520e6; `Peak reserved: 496.00MiB` says the same
    memory with all its digits, and is taken where it stands.
    """

    words = ("iteration: ", "Peak reserved")

    def __init__(self, instance: Instance) -> None:
        super().__init__(instance)
        self._rounded: list[MemoryRecord] = []
        self._has_peak = False

    def read(self, line: LogLine) -> Iterator[Record]:
        """See `LogReader.read`."""
        step, time = _ITERATION.search(line.text), _TIME.search(line.text)
        if step and time:
            yield StepRecord(int(step[1]), quantity(time[1], HUMAN) / 1e3)
        found = _PEAK.search(line.text)
        if found and (gib := memory_gib(found[1], MEMORY_GIB)):
            self._has_peak = True
            yield MemoryRecord(gib)
        found = _ROUNDED_PEAK.search(line.text)
        if found and (n_bytes := memory_gib(found[1], HUMAN)):
            self._rounded.append(MemoryRecord(n_bytes / GIB, line.rank))

    def end(self) -> list[MemoryRecord]:
        """See `LogReader.end`."""
        return [] if self._has_peak else self._rounded


NANOTRON = Framework(
    name="nanotron",
    title="nanotron",
    version="0.4",
    documentation="https://github.com/huggingface/nanotron",
    log=LogFormat(NanotronReader),
    rules=rules,
)
