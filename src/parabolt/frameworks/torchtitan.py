"""torchtitan: command-line overrides of a training configuration."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.frameworks.framework import PASSED, Framework
from parabolt.frameworks.launch_settings import Settings
from parabolt.frameworks.log_format import LogFormat, LogReader, MemoryRecord, StepRecord
from parabolt.frameworks.quantities import HUMAN, TORCH_GIB, memory_gib, quantity
from parabolt.frameworks.rules import kv_heads_divisible, whole_sequence, without
from parabolt.instances.micro_batches import micro_batch_size, n_micro_batches, whole_micro_batches
from parabolt.space.knobs import KNOBS, Precision, Schedule
from parabolt.space.rules import Rule, stages_filled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from parabolt.frameworks.log_format import Record
    from parabolt.frameworks.log_line import LogLine
    from parabolt.instances.specs import Instance, Workload
    from parabolt.space.configuration import Configuration

VERSION = "0.2"
DOCUMENTATION = "https://github.com/pytorch/torchtitan/blob/main/torchtitan/config/job_config.py"
_RESHARD = {2: "never", 3: "always"}
_MODE = "--activation_checkpoint.mode"
_RECOMPUTATION = {
    "none": (f"{_MODE} none",),
    "selective": (f"{_MODE} selective", "--activation_checkpoint.selective_ac_option op"),
    "layer": (f"{_MODE} full",),
    "chunk": (f"{_MODE} full",),
}


def rules(instance: Instance) -> tuple[Rule, ...]:
    """What its job configuration can ask for."""
    model, work = instance.model, instance.workload
    return (
        whole_micro_batches(work),
        whole_sequence(work.sequence_length),
        kv_heads_divisible(model),
        stages_filled(model.n_layers),
        _reachable_stages(model.n_layers),
        Rule(
            "sequence_parallel_always",
            ("tp", "sp"),
            lambda c: c.sp == c.tp,
            lambda c: (
                f"sp {c.sp} is not tp {c.tp}: its tensor parallelism always has sequence "
                "parallelism over the whole group"
            ),
        ),
        Rule(
            "no_distributed_optimizer",
            ("dp", "cp", "zero"),
            lambda c: (instance.zero_stage(c.zero) != 1) | (c.dp * c.cp == 1),
            lambda c: (
                f"ZeRO {c.zero}: it shards gradients and optimizer states (2, 3) or nothing, not "
                "optimizer states alone, as the distributed optimizer does"
            ),
        ),
        _pipeline_micro_batches(work),
        _expert_shards(),
        Rule(
            "zero_bubble_with_chunks",
            ("chunks", "schedule"),
            lambda c: (c.schedule != Schedule.ZERO_BUBBLE) | (c.chunks > 1),
            lambda c: f"schedule=zero_bubble needs several chunks, and chunks is {c.chunks}",
        ),
        Rule(
            "no_nvfp4",
            ("precision",),
            lambda c: c.precision != Precision.NVFP4,
            lambda c: f"{KNOBS['precision'].text(c.precision)}: it converts to fp8 and mxfp8",
        ),
        *without(
            {
                "ulysses": "its context parallelism is a ring",
                "first_layers": "it takes layers from the ends by weights, one for all stages",
                "last_layers": "it takes layers from the ends by weights, one for all stages",
            }
        ),
    )


def _reachable_stages(n_layers: int) -> Rule:
    """Virtual stages follow from layers per stage, rounded up; without it there are one or two."""

    def holds(c: Any) -> Any:
        n_stages = c.pp * c.chunks
        return (c.chunks <= 2) | (-(-n_layers // -(-n_layers // n_stages)) == n_stages)

    return Rule(
        "reachable_stages",
        ("pp", "chunks"),
        holds,
        lambda c: (
            f"{n_layers} layers in equal parts of whole layers never make {c.pp * c.chunks} "
            "virtual stages"
        ),
    )


def _expert_shards() -> Rule:
    return Rule(
        "expert_shards",
        ("tp", "etp"),
        lambda c: (c.etp <= 1) | (c.etp == c.tp),
        lambda c: f"etp {c.etp} is neither 1 nor tp {c.tp}",
    )


def _pipeline_micro_batches(work: Workload) -> Rule:
    """What PyTorch's schedules accept: 1F1B as many as stages, interleaved 1F1B whole rounds."""

    def holds(c: Any) -> Any:
        n = n_micro_batches(work, c)
        n_rounds = np.maximum(n // c.pp, 1)
        return np.where(c.chunks == 1, n >= c.pp, n % n_rounds == 0)

    return Rule(
        "pipeline_micro_batches",
        ("dp", "pp", "chunks", "grad_accum", "micro_batch"),
        holds,
        lambda c: (
            f"{n_micro_batches(work, c)} micro-batches "
            + (
                f"are fewer than the {c.pp} stages"
                if c.chunks == 1
                else f"are no whole number of rounds over the {c.pp} stages"
            )
        ),
    )


def settings(instance: Instance, c: Configuration) -> Settings:
    """Overrides for a configuration. ZeRO 2 and 3 are FSDP2 without and with resharding."""
    work = instance.workload
    micro = micro_batch_size(work, c)
    shard = (c.shard or c.dp) if c.zero > 1 or c.dp == 1 else 1
    recompute = KNOBS["recompute"].scale.word(c.recompute)
    recompute = work.recomputation if recompute == "none" else recompute
    flags = [
        f"--parallelism.data_parallel_replicate_degree {c.dp // shard}",
        f"--parallelism.data_parallel_shard_degree {shard}",
        f"--parallelism.tensor_parallel_degree {c.tp}",
        f"--parallelism.pipeline_parallel_degree {c.pp}",
        f"--parallelism.context_parallel_degree {c.cp}",
        *([f"--parallelism.expert_parallel_degree {c.ep}"] if c.ep > 1 else []),
        *([f"--parallelism.expert_tensor_parallel_degree {c.etp}"] if c.etp else []),
        *([f"--parallelism.fsdp_reshard_after_forward {_RESHARD[c.zero]}"] if c.zero > 1 else []),
        *_pipeline(instance, c, micro),
        f"--training.seq_len {work.sequence_length}",
        f"--training.local_batch_size {work.batch_size // c.dp if c.pp > 1 else micro}",
        f"--training.global_batch_size {work.batch_size}",
        *_RECOMPUTATION[recompute],
    ]
    notes = ["the gradient bucket is a block of the model, whatever `bucket` says"]
    if recompute == "chunk":
        notes.append("recomputes layer by layer, not chunk by chunk: less memory than predicted")
    return Settings(flags, notes)


def _pipeline(instance: Instance, c: Configuration, micro: int) -> list[str]:
    if c.pp == 1:
        return []
    option = "--parallelism.pipeline_parallel"
    n_layers, n_stages = instance.model.n_layers, c.pp * c.chunks
    per_stage = -(-n_layers // n_stages)
    is_reached = -(-n_layers // per_stage) == n_stages  # else it is the default number of stages
    return [
        f"{option}_schedule {_schedule(c)}",
        *([f"{option}_layers_per_stage {per_stage}"] if is_reached else []),
        f"{option}_first_stage_less_layers 0",
        f"{option}_last_stage_less_layers 0",
        f"{option}_microbatch_size {micro}",
    ]


def _schedule(c: Configuration) -> str:
    if c.schedule == Schedule.ZERO_BUBBLE:
        return "InterleavedZeroBubble"
    return "1F1B" if c.chunks == 1 else "Interleaved1F1B"


_STEP = re.compile(r"(?<!validate )(?<!val )\bstep:\s{1,12}(\d{1,12})\b")
_TOKENS = re.compile(r"\b[tw]ps:\s{1,12}([^\s]{1,40})")
_ITERATION = re.compile(r"\biter:\s{1,12}([^\s]{1,40})")
_MEMORY = re.compile(r"\bmemory:\s{0,12}([-\d.,]{1,20}\s?[A-Za-z]{1,3})")


class TorchtitanReader(LogReader):
    """torchtitan's line of metrics.

    `tps` (`wps` until the autumn of 2024) are tokens/s per GPU over all GPUs, as a mean since the
    last such line; the first versions print `iter`, the seconds of a step. Memory is the largest
    that was reserved since the last line, on the rank that prints, in GiB.
    """

    words = ("step:",)

    def read(self, line: LogLine) -> Iterator[Record]:
        """See `LogReader.read`."""
        step = _STEP.search(line.text)
        if step is None:
            return
        if found := _TOKENS.search(line.text):
            yield StepRecord(int(step[1]), self.tokens_per_gpu_seconds(quantity(found[1], HUMAN)))
        elif found := _ITERATION.search(line.text):
            yield StepRecord(int(step[1]), quantity(found[1], {"": 1.0, "s": 1.0}))
        found = _MEMORY.search(line.text)
        if found and (gib := memory_gib(found[1], TORCH_GIB)) is not None:
            yield MemoryRecord(gib)


TORCHTITAN = Framework(
    name="torchtitan",
    title="torchtitan",
    version=VERSION,
    documentation=DOCUMENTATION,
    log=LogFormat(TorchtitanReader),
    rules=rules,
    settings=settings,
    passed=PASSED | {"recompute", "shard", "ep", "etp", "schedule"},
    dropped={"bucket": "its gradient bucket is a block of the model"},
    rejections=(
        r"Invalid parallel dims: dp_replicate\(",
        r"Number of virtual stages \(\d+\) must be divisible by",
        r"(?:Single|Multi)-stage schedule requires|Single stage schedule requires",
        r"Number of stages \(\d+\) cannot be greater than effective layers",
        r"Configuration would result in empty stages",
        r"num_stages \d+ must be evenly divisible by pp_degree",
        r"Batch size \d+ must be divisible by microbatch_size",
        r"global batch size must be multiple of local batch size",
        r"Sequence length \d+ must be divisible by the product of TP degree",
        r"Number of microbatches \(\d+\) must be greater than",
        r"(?:Interleaved 1F1B|Zero bubble) requires the number of microbatches to be a multiple",
        r"Invalid field names in <class ",
    ),
)
