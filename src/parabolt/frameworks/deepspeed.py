"""DeepSpeed: entries of its JSON configuration, written as `path = value`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from parabolt.frameworks.framework import Framework
from parabolt.frameworks.launch_settings import LaunchSettings
from parabolt.frameworks.log_format import LogFormat, LogReader, MemoryRecord, StepRecord
from parabolt.frameworks.quantities import TORCH_GIB, memory_gib, quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from parabolt.frameworks.log_format import Record
    from parabolt.frameworks.log_line import LogLine
    from parabolt.instances.specs import Instance
    from parabolt.space.configuration import Configuration

VERSION = "0.17"
DOCUMENTATION = "https://www.deepspeed.ai/docs/config-json/"
#: ZeRO 0 here shards optimizer states, which DeepSpeed calls stage 1.
_STAGE = {0: 1, 2: 2, 3: 3}


def launch(instance: Instance, configuration: Configuration) -> LaunchSettings:
    """Entries for a configuration; tensor parallelism is AutoTP."""
    if reason := _obstacle(configuration):
        return LaunchSettings("DeepSpeed", VERSION, DOCUMENTATION, reason=reason)
    c, work = configuration, instance.workload
    micro = work.micro_batch_size or 1
    bucket = c.bucket * 1_000_000
    flags = [
        f"train_batch_size = {work.batch_size}",
        f"train_micro_batch_size_per_gpu = {micro}",
        f"gradient_accumulation_steps = {work.batch_size // (c.dp * micro)}",
        "bf16.enabled = true",
        f"zero_optimization.stage = {_STAGE[c.zero]}",
        "zero_optimization.overlap_comm = true",
        f"zero_optimization.reduce_bucket_size = {bucket}",
        *([f"zero_optimization.allgather_bucket_size = {bucket}"] if c.zero < 3 else []),
        *([f"tensor_parallel.autotp_size = {c.tp}"] if c.tp > 1 else []),
    ]
    notes = [] if c.zero else ["stage 1 shards the optimizer states, as ZeRO 0 does here"]
    if work.recomputation != "none":
        notes.append("activation checkpointing is switched on in the model's code")
    return LaunchSettings("DeepSpeed", VERSION, DOCUMENTATION, tuple(flags), notes=tuple(notes))


def _obstacle(c: Configuration) -> str:
    if c.pp > 1:
        return "pipeline stages need a model written as a PipelineModule; no setting asks for them"
    if c.cp > 1:
        return "ring context parallelism does not exist; its Ulysses splits heads instead"
    if c.sp > 1:
        return "AutoTP has no sequence parallelism; sp > 1 is not possible"
    if c.tp > 1 and c.zero == 3:
        return "AutoTP training goes with ZeRO stages up to 2 only"
    return ""


_RATE = re.compile(r"\b(?:Curr|, )SamplesPerSec=([^\s,]{1,40})")
_GLOBAL_STEP = re.compile(r"\bglobal_step=(\d{1,12})")
_MICRO_STEP = re.compile(r"(?:^|\s)\d{1,9}/(\d{1,12}),? ")
_PROGRESS = re.compile(r"\bstep=(\d{1,12}), skipped=")
_PIPELINE = re.compile(r"\bsteps?:\s{1,8}(\d{1,12})\b(?=.{0,2000}\biter time \(s\): ([^\s]{1,40}))")
_PEAK = re.compile(r"\bMax(?:MemAllocated=|_MA |_CA )\s{0,4}([\d.,]{1,20}\s?[A-Za-z]{1,3})")


def peak_records(text: str) -> Iterator[MemoryRecord]:
    """Peaks as DeepSpeed's timer and its reports of memory print them."""
    for peak in _PEAK.finditer(text):
        if (gib := memory_gib(peak[1], TORCH_GIB)) is not None:
            yield MemoryRecord(gib)


class DeepSpeedReader(LogReader):
    """DeepSpeed's throughput timer, and the progress line of its pipeline engine.

    The timer prints samples/s of the whole job, `CurrSamplesPerSec` of the step itself, from the
    third step on. Before version 0.7 it prints `epoch/micro-step` instead of `global_step`; the
    step then is that of the line `step=..., skipped=...` before it. The pipeline engine prints the
    mean of its interval. GB are 2^30 bytes.
    """

    words = ("SamplesPerSec=", "skipped=", "iter time (s)", "MaxMemAllocated", "Max_MA")

    def __init__(self, instance: Instance) -> None:
        super().__init__(instance)
        self._step: int | None = None

    def read(self, line: LogLine) -> Iterator[Record]:
        """See `LogReader.read`."""
        text = line.text
        if found := _PROGRESS.search(text):
            self._step = int(found[1])
        if (rate := _RATE.search(text)) and (step := self._timer_step(text)) is not None:
            yield StepRecord(step, self.samples_seconds(quantity(rate[1])))
        elif found := _PIPELINE.search(text):
            yield StepRecord(int(found[1]), quantity(found[2]))
        yield from peak_records(text)

    def _timer_step(self, text: str) -> int | None:
        if found := _GLOBAL_STEP.search(text):
            return int(found[1])
        found = _MICRO_STEP.search(text)
        return self._step if self._step is not None else found and int(found[1])


DEEPSPEED = Framework(
    name="deepspeed",
    title="DeepSpeed",
    version=VERSION,
    documentation=DOCUMENTATION,
    log=LogFormat(DeepSpeedReader),
    launch=launch,
)
