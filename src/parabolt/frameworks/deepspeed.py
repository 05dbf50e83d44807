"""DeepSpeed: entries of its JSON configuration, written as `path = value`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parabolt.frameworks.launch_settings import LaunchSettings

if TYPE_CHECKING:
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
