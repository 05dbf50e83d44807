"""Megatron-LM: command-line arguments of `pretrain_gpt.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parabolt.frameworks.launch_settings import LaunchSettings

if TYPE_CHECKING:
    from parabolt.instances.specs import Instance, ModelShape, Workload
    from parabolt.space.configuration import Configuration

VERSION = "core 0.14"
DOCUMENTATION = "https://docs.nvidia.com/megatron-core/developer-guide/latest/"
_SHARDING = {2: "optim_grads", 3: "optim_grads_params"}


def launch(instance: Instance, configuration: Configuration) -> LaunchSettings:
    """Arguments for a configuration. ZeRO 0 is the distributed optimizer, 2 and 3 Megatron-FSDP."""
    c = configuration
    flags = [
        f"--tensor-model-parallel-size {c.tp}",
        f"--pipeline-model-parallel-size {c.pp}",
        f"--context-parallel-size {c.cp}",
        "--use-distributed-optimizer",
        *(["--sequence-parallel"] if c.sp > 1 else []),
        *([f"--num-virtual-stages-per-pipeline-rank {c.chunks}"] if c.chunks > 1 else []),
        *_sharding(c),
        *_workload(instance.workload, instance.model.n_layers // (c.pp * c.chunks)),
        *_model(instance.model),
    ]
    notes = [f"data parallelism {c.dp} follows from the number of GPUs"]
    if c.zero:
        notes.append("unset CUDA_DEVICE_MAX_CONNECTIONS")
    elif c.tp > 1 or c.cp > 1:
        notes.append("on Hopper and before: CUDA_DEVICE_MAX_CONNECTIONS=1")
    return LaunchSettings("Megatron-LM", VERSION, DOCUMENTATION, tuple(flags), notes=tuple(notes))


def _sharding(c: Configuration) -> list[str]:
    if not c.zero:
        return []
    return [
        "--use-megatron-fsdp",
        f"--data-parallel-sharding-strategy {_SHARDING[c.zero]}",
        "--no-gradient-accumulation-fusion",
        "--ckpt-format fsdp_dtensor",
        "--overlap-grad-reduce",
        *(["--overlap-param-gather"] if c.zero == 3 else []),
        f"--ddp-bucket-size {c.bucket * 1_000_000}",
    ]


def _workload(work: Workload, chunk_layers: int) -> list[str]:
    flags = [
        f"--seq-length {work.sequence_length}",
        f"--max-position-embeddings {work.sequence_length}",
        f"--global-batch-size {work.batch_size}",
        f"--micro-batch-size {work.micro_batch_size or 1}",
        "--bf16",
    ]
    if work.recomputation != "none":
        layers = 1 if work.recomputation == "layer" else chunk_layers
        flags += [
            "--recompute-granularity full",
            "--recompute-method uniform",
            f"--recompute-num-layers {layers}",
        ]
    return flags


def _model(model: ModelShape) -> list[str]:
    head_size = model.query_size // model.n_heads
    flags = [
        f"--num-layers {model.n_layers}",
        f"--hidden-size {model.hidden_size}",
        f"--ffn-hidden-size {model.ffn_size}",
        f"--num-attention-heads {model.n_heads}",
        f"--kv-channels {head_size}",
    ]
    if model.n_kv_heads is not None and model.n_kv_heads < model.n_heads:
        flags += ["--group-query-attention", f"--num-query-groups {model.n_kv_heads}"]
    flags += ["--swiglu"] if model.is_gated else []
    return [*flags, *([] if model.is_tied else ["--untie-embeddings-and-output-weights"])]
