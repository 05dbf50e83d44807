"""DeepSpeed: entries of its JSON configuration, written as `path = value`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from parabolt.frameworks.framework import PASSED, Framework
from parabolt.frameworks.launch_settings import Settings
from parabolt.frameworks.log_format import LogFormat, LogReader, MemoryRecord, StepRecord
from parabolt.frameworks.quantities import HUMAN, TORCH_GIB, memory_gib, quantity
from parabolt.frameworks.rules import two_bytes, ulysses_heads
from parabolt.instances.micro_batches import micro_batch_size, n_micro_batches, whole_micro_batches
from parabolt.space.knobs import KNOBS
from parabolt.space.rules import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from parabolt.frameworks.log_format import Record
    from parabolt.frameworks.log_line import LogLine
    from parabolt.instances.specs import Instance
    from parabolt.space.configuration import Configuration

VERSION = "0.17"
DOCUMENTATION = "https://www.deepspeed.ai/docs/config-json/"


def rules(instance: Instance) -> tuple[Rule, ...]:
    """What its configuration can ask for; tensor parallelism is AutoTP."""
    return (
        whole_micro_batches(instance.workload),
        Rule(
            "no_pipeline",
            ("pp",),
            lambda c: c.pp == 1,
            lambda c: (
                f"pp {c.pp}: pipeline stages need a model written as a PipelineModule; no setting "
                "asks for them"
            ),
        ),
        Rule(
            "no_ring",
            ("cp", "ulysses"),
            lambda c: c.cp == c.ulysses,
            lambda c: (
                f"cp {c.cp}: ring context parallelism does not exist; its Ulysses splits heads"
            ),
        ),
        Rule(
            "no_sequence_parallel",
            ("sp",),
            lambda c: c.sp == 1,
            lambda c: f"sp {c.sp}: AutoTP has no sequence parallelism",
        ),
        Rule(
            "autotp_below_zero3",
            ("tp", "zero"),
            lambda c: (c.tp == 1) | (c.zero < 3),
            lambda c: f"tp {c.tp} with ZeRO {c.zero}: AutoTP goes with stages up to 2 only",
        ),
        two_bytes(),
        Rule(
            "shards_of_zero3",
            ("zero", "shard"),
            lambda c: (c.shard == 0) | (c.zero == 3),
            lambda c: f"shard {c.shard} with ZeRO {c.zero}: zero_hpz_partition_size is of stage 3",
        ),
        ulysses_heads(instance.model),
    )


def settings(instance: Instance, c: Configuration) -> Settings:
    """Entries for a configuration; buckets are of parameters."""
    work = instance.workload
    flags = [
        f"train_batch_size = {work.batch_size}",
        f"train_micro_batch_size_per_gpu = {micro_batch_size(work, c)}",
        f"gradient_accumulation_steps = {n_micro_batches(work, c)}",
        f"{KNOBS['precision'].scale.word(c.precision)}.enabled = true",
        f"zero_optimization.stage = {instance.zero_stage(c.zero)}",
        *(_buckets(c) if c.dp > 1 else []),
        *([f"zero_optimization.zero_hpz_partition_size = {c.shard}"] if c.shard else []),
        *(["zero_optimization.offload_optimizer.device = cpu"] if c.offload else []),
        *(["activation_checkpointing.cpu_checkpointing = true"] if c.offload > 1 else []),
        *([f"tensor_parallel.autotp_size = {c.tp}"] if c.tp > 1 else []),
    ]
    is_one = c.zero == 0 and instance.is_optimizer_sharded
    notes = ["stage 1 shards the optimizer states, as ZeRO 0 does here"] if is_one else []
    if work.recomputation != "none":
        notes.append("activation checkpointing is switched on in the model's code")
    return Settings(flags, notes)


def _buckets(c: Configuration) -> list[str]:
    size = c.bucket * 1_000_000
    gather = [f"zero_optimization.allgather_bucket_size = {size}"] if c.zero < 3 else []
    return [
        f"zero_optimization.overlap_comm = {'true' if c.overlap_grad else 'false'}",
        f"zero_optimization.reduce_bucket_size = {size}",
        *gather,
    ]


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
            yield StepRecord(step, self.samples_seconds(quantity(rate[1], HUMAN)))
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
    rules=rules,
    settings=settings,
    passed=PASSED | {"precision", "shard", "offload", "overlap_grad"},
    rejections=(
        r"DeepSpeed config values that mismatch TrainingArguments",
        r"Check batch related parameters\. train_batch_size is not equal",
        r"Train batch size must be divisible by micro-batch data parallelism",
        r"(?:[Bb]atch size|Micro batch size per gpu|accumulation steps): -?\d+ has to be greater",
        r"allgather_bucket_size must be a multiple of",
        r"compatibility between 'autotp' and 'zero_stage = 3' has not been validated",
    ),
)
