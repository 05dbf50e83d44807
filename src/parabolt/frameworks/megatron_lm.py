"""Megatron-LM: arguments of `pretrain_gpt.py`, and the log that all its descendants share."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from parabolt.frameworks.deepspeed import peak_records
from parabolt.frameworks.framework import Framework, unsaid
from parabolt.frameworks.launch_settings import Settings
from parabolt.frameworks.log_format import LogFormat, LogReader, MemoryRecord, StepRecord
from parabolt.frameworks.quantities import MEMORY_GIB, TORCH_GIB, memory_gib, quantity
from parabolt.frameworks.rules import (
    interleaved_micro_batches,
    kv_heads_divisible,
    kv_heads_shared,
    sequence_parallel_in_full,
    ulysses_heads,
    whole_sequence,
    without,
)
from parabolt.instances.dialects import even_stages
from parabolt.instances.micro_batches import micro_batch_size, whole_micro_batches
from parabolt.space.knobs import KNOBS, Offload, Precision
from parabolt.space.rules import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from parabolt.frameworks.log_format import Record
    from parabolt.frameworks.log_line import LogLine
    from parabolt.instances.model_shape import ModelShape
    from parabolt.instances.specs import Instance, Workload
    from parabolt.space.configuration import Configuration

VERSION = "core 0.14"
DOCUMENTATION = "https://docs.nvidia.com/megatron-core/developer-guide/latest/"
_SHARDING = {2: "optim_grads", 3: "optim_grads_params"}
_FORMATS: dict[int, tuple[str, ...]] = {
    Precision.FP16: ("--fp16",),
    Precision.BF16: ("--bf16",),
    Precision.FP8: ("--bf16", "--fp8-format hybrid"),
    Precision.MXFP8: ("--bf16", "--fp8-format e4m3", "--fp8-recipe mxfp8"),
    Precision.NVFP4: ("--bf16", "--fp4-format e2m1"),
}
#: All knobs but the schedule, which it has no other of.
_PASSED = frozenset(KNOBS) - {"schedule"}


def rules(instance: Instance) -> tuple[Rule, ...]:
    """What core 0.13 and 0.14 accept.

    From `megatron/training/arguments.py`, `TransformerConfig` and the schedules.
    """
    return (*rules_0_15(instance), _no_nvfp4())


def rules_0_15(instance: Instance) -> tuple[Rule, ...]:
    """What core 0.15 accepts: nvfp4 as well."""
    return (*_rules(instance), kv_heads_divisible(instance.model))


def rules_0_16(instance: Instance) -> tuple[Rule, ...]:
    """What core 0.16 accepts: ranks may share a key-value head."""
    return (*_rules(instance), kv_heads_shared(instance.model))


def _rules(instance: Instance) -> tuple[Rule, ...]:
    model, work = instance.model, instance.workload
    return (
        whole_micro_batches(work),
        interleaved_micro_batches(work),
        whole_sequence(work.sequence_length),
        sequence_parallel_in_full(),
        even_stages(instance),
        ulysses_heads(model),
        _experts_with_sequence_parallel(model),
        _overlap_with_sequence_parallel(),
        _offload_alone(),
        *without({"schedule": "its schedules are 1F1B and interleaved 1F1B"}),
    )


def settings(instance: Instance, c: Configuration) -> Settings:
    """Arguments for a configuration. ZeRO 1 is the distributed optimizer, 2 and 3 Megatron-FSDP."""
    flags = [
        f"--tensor-model-parallel-size {c.tp}",
        f"--pipeline-model-parallel-size {c.pp}",
        f"--context-parallel-size {c.cp}",
        *_context(c),
        *([f"--expert-model-parallel-size {c.ep}"] if c.ep > 1 else []),
        *([f"--expert-tensor-parallel-size {c.etp}"] if c.etp else []),
        *(["--use-distributed-optimizer"] if instance.zero_stage(c.zero) else []),
        *(["--sequence-parallel"] if c.sp > 1 else []),
        *(["--tp-comm-overlap"] if c.overlap_tp else []),
        *([f"--num-virtual-stages-per-pipeline-rank {c.chunks}"] if c.chunks > 1 else []),
        *_stages(instance.model, c),
        *_data_parallel(c),
        *_offloading(instance.model, c),
        *_workload(instance.workload, c),
        *_recomputation(instance, c),
        *_model(instance.model),
    ]
    notes = [f"data parallelism {c.dp} follows from the number of GPUs"]
    if instance.model.window is not None:
        notes.append("no flag asks for its layers with sliding-window attention")
    if c.zero > 1:
        notes.append("unset CUDA_DEVICE_MAX_CONNECTIONS")
    elif c.tp > 1 or c.cp > 1:
        notes.append("on Hopper and before: CUDA_DEVICE_MAX_CONNECTIONS=1")
    return Settings(flags, notes)


def _unsaid(instance: Instance) -> str:
    """Its flags describe the model, and those of a hybrid ask for the order of the layers."""
    if instance.model.state_space is not None:
        return "state-space layers: parabolt doesn't know the order of a hybrid's layers"
    experts = instance.model.experts
    if experts is not None and experts.latent_size is not None:
        return "experts in a latent space: parabolt passes no such size on"
    return unsaid(instance)


def _data_parallel(c: Configuration) -> list[str]:
    """Buckets are of parameters; without ranks to reduce over they change nothing."""
    overlap = ["--overlap-grad-reduce"] if c.overlap_grad else []
    buckets = [*overlap, f"--ddp-bucket-size {c.bucket * 1_000_000}"]
    n_groups = c.dp * c.cp // c.shard if c.shard else 1
    buckets += [f"--num-distributed-optimizer-instances {n_groups}"] if n_groups > 1 else []
    if c.zero < 2:
        return buckets if c.dp * c.cp > 1 else []
    return [
        "--use-megatron-fsdp",
        f"--data-parallel-sharding-strategy {_SHARDING[c.zero]}",
        "--no-gradient-accumulation-fusion",
        "--ckpt-format fsdp_dtensor",
        *buckets,
        *(["--overlap-param-gather"] if c.zero == 3 else []),
    ]


def _context(c: Configuration) -> list[str]:
    """Neighbours exchange heads, and groups of them form the ring."""
    if c.ulysses == 1:
        return []
    if c.ulysses == c.cp:
        return ["--cp-comm-type a2a"]
    sizes = f"{c.ulysses} {c.cp // c.ulysses}"
    return ["--cp-comm-type a2a+p2p", f"--hierarchical-context-parallel-sizes {sizes}"]


def _stages(model: ModelShape, c: Configuration) -> list[str]:
    """Ends with layers of their own.

    A number that the chunks divide is a flag, and an even share less one counts the embedding, or
    the output, as a layer. Anything else is a list of all virtual stages.
    """
    ends = {"first": (c.first_layers, "embedding"), "last": (c.last_layers, "loss")}
    stated = {end: (n, part) for end, (n, part) in ends.items() if n}
    if all(n % c.chunks == 0 for n, _ in stated.values()):
        return [f"--decoder-{end}-pipeline-num-layers {n}" for end, (n, _) in stated.items()]
    share = (model.n_layers + len(stated)) // c.pp
    if all(n == share - 1 for n, _ in stated.values()):
        return [f"--account-for-{part}-in-pipeline-split" for _, part in stated.values()]
    return [f"--pipeline-model-parallel-layout '{_layout(model, c)}'"]


def _layout(model: ModelShape, c: Configuration) -> str:
    """Virtual stages by `|`: E embedding, t a layer, m a layer of further prediction, L loss."""
    n_ends = bool(c.first_layers) + bool(c.last_layers)
    even = (model.n_layers - c.first_layers - c.last_layers) // max(c.pp - n_ends, 1)
    layers = [c.first_layers or even, *[even] * (c.pp - 2), c.last_layers or even]
    parts = []
    for chunk in range(c.chunks):
        for stage, n in enumerate(layers):
            most = -(-n // c.chunks)
            is_outermost = chunk == (c.chunks - 1 if stage == c.pp - 1 else 0)
            parts.append("t" * (n - (c.chunks - 1) * most if is_outermost else most))
    return f"E{'|'.join(parts)}{'m' * model.n_mtp_layers}L"


def _offloading(model: ModelShape, c: Configuration) -> list[str]:
    if c.offload == Offload.NONE:
        return []
    flags = ["--optimizer-cpu-offload", "--use-precision-aware-optimizer"]
    if c.offload == Offload.ACTIVATIONS:
        flags.append(f"--cpu-offloading-num-layers {model.n_layers - 1}")
    return flags


def _workload(work: Workload, c: Configuration) -> list[str]:
    return [
        f"--seq-length {work.sequence_length}",
        f"--max-position-embeddings {work.sequence_length}",
        f"--global-batch-size {work.batch_size}",
        f"--micro-batch-size {micro_batch_size(work, c)}",
        *_FORMATS[c.precision],
    ]


def _recomputation(instance: Instance, c: Configuration) -> list[str]:
    word = KNOBS["recompute"].scale.word(c.recompute)
    word = instance.workload.recomputation if word == "none" else word
    if word in ("none", "selective"):
        return [] if word == "none" else ["--recompute-granularity selective"]
    method, layers = ("block", c.recompute_layers) if c.recompute_layers else ("uniform", 1)
    if word == "chunk":
        layers = -(-instance.model.n_layers // (c.pp * c.chunks))
    return [
        "--recompute-granularity full",
        f"--recompute-method {method}",
        f"--recompute-num-layers {layers}",
    ]


def _model(model: ModelShape) -> list[str]:
    flags = [
        f"--num-layers {model.n_layers}",
        f"--hidden-size {model.hidden_size}",
        f"--ffn-hidden-size {model.ffn_size}",
        f"--num-attention-heads {model.n_heads}",
        *_attention(model),
        *_experts(model),
    ]
    flags += ["--swiglu"] if model.is_gated else []
    flags += [f"--mtp-num-layers {model.n_mtp_layers}"] if model.n_mtp_layers else []
    return [*flags, *([] if model.is_tied else ["--untie-embeddings-and-output-weights"])]


def _attention(model: ModelShape) -> list[str]:
    if (latent := model.latent_attention) is not None:
        return [
            "--multi-latent-attention",
            *([f"--q-lora-rank {latent.q_rank}"] if latent.q_rank else []),
            f"--kv-lora-rank {latent.kv_rank}",
            f"--qk-head-dim {latent.nope_head_size}",
            f"--qk-pos-emb-head-dim {latent.rope_head_size}",
            f"--v-head-dim {latent.value_head_size}",
        ]
    flags = [f"--kv-channels {model.query_size // model.n_heads}"]
    if model.n_kv_heads is not None and model.n_kv_heads < model.n_heads:
        flags += ["--group-query-attention", f"--num-query-groups {model.n_kv_heads}"]
    return flags


def _experts(model: ModelShape) -> list[str]:
    if (experts := model.experts) is None:
        return []
    n, every = model.n_layers - experts.n_dense_layers, experts.every
    # A list of Python, one entry per layer: 1 where it has experts.
    with_experts = (
        f"[1]*{n}" if every == 1 else f"([0]*{every - 1}+[1])*{n // every}+[0]*{n % every}"
    )
    layers = f"([0]*{experts.n_dense_layers}+{with_experts})"
    shared = experts.shared_ffn_size
    return [
        f"--num-experts {experts.n_experts}",
        f"--moe-router-topk {experts.n_active}",
        f"--moe-ffn-hidden-size {experts.ffn_size}",
        *([f"--moe-shared-expert-intermediate-size {shared}"] if shared else []),
        *([f"--moe-layer-freq '{layers}'"] if experts.n_dense_layers or every > 1 else []),
    ]


def _experts_with_sequence_parallel(model: ModelShape) -> Rule:
    """`MoELayer` refuses to train over tensor-parallel ranks without sequence parallelism."""
    has_experts = model.experts is not None
    return Rule(
        "experts_with_sequence_parallel",
        ("tp", "sp"),
        lambda c: (c.sp == c.tp) | (not has_experts),
        lambda c: f"tp {c.tp} with experts needs sequence parallelism, and sp is {c.sp}",
    )


def _no_nvfp4() -> Rule:
    """`TransformerConfig` knows fp4 from core 0.15 on."""
    return Rule(
        "no_nvfp4",
        ("precision",),
        lambda c: c.precision != Precision.NVFP4,
        lambda c: f"{KNOBS['precision'].text(c.precision)}: core has it from 0.15 on",
    )


def _overlap_with_sequence_parallel() -> Rule:
    """`--tp-comm-overlap` is asserted to come with sequence parallelism."""
    return Rule(
        "overlap_with_sequence_parallel",
        ("sp", "overlap_tp"),
        lambda c: (c.overlap_tp == 0) | (c.sp > 1),
        lambda c: f"overlap_tp=on needs sequence parallelism, and sp is {c.sp}",
    )


def _offload_alone() -> Rule:
    """`TransformerConfig` refuses activations on the host with stages or recomputation."""
    return Rule(
        "offload_alone",
        ("pp", "recompute", "offload"),
        lambda c: (c.offload != Offload.ACTIVATIONS) | ((c.pp == 1) & (c.recompute == 0)),
        lambda c: (
            f"offload=activations goes without pipeline stages and recomputation, and pp is {c.pp}"
        ),
    )


#: The number of an iteration, or its time; ranks that write at once may put two on one line.
_ITERATION_OR_TIME = re.compile(
    r"\biteration:?\s{1,12}(?P<number>\d{1,12})\s{0,12}/"
    r"|elapsed time per iteration \((?P<unit>ms|s)\):?\s{0,12}(?P<time>[^\s|/]{1,40})"
)
#: Peaks by preference: what the allocator holds, in the wording of today and of before 2021, and
#: what tensors use.
_PEAKS = [
    re.compile(rf"\b{name}:?\s{{0,4}}([^\s|]{{1,40}})")
    for name in ("max reserved", "max cached", "max allocated")
]
_RANK = re.compile(r"\[Rank (\d{1,7})\]")
_MEMORY_UNIT = re.compile(r"memory \((\w{1,4})\)")
_GIGABYTES = [
    re.compile(rf"mem-max-{name}-gigabytes:\s{{0,4}}([^\s|]{{1,40}})")
    for name in ("reserved", "allocated")
]


class MegatronReader(LogReader):
    """The training log of Megatron-LM and of its descendants.

    Wordings: `iteration 3/ 10 | ... | elapsed time per iteration (ms): 2500.5 |`, with `(s)` in
    BigScience's Megatron-DeepSpeed, and with `2500.5/2498.1` (this interval's, and the mean of all)
    in AMD's Primus. A log interval's time is its mean. Memory is reported once per rank, in MiB
    (called MB), and by Megatron-Bridge in units of 1e9 bytes; DeepSpeed's timer adds
    `MaxMemAllocated` in GiB.
    """

    words = ("iteration", "MaxMemAllocated", "Max_MA")

    def __init__(self, instance: Instance) -> None:
        super().__init__(instance)
        self._iteration: dict[str, int] = {}

    def read(self, line: LogLine) -> Iterator[Record]:
        """See `LogReader.read`."""
        for found in _ITERATION_OR_TIME.finditer(line.text):
            if found["number"]:
                self._iteration[line.source] = int(found["number"])
                continue
            step = self._iteration.pop(line.source, None)
            if step is not None:
                seconds = quantity(found["time"]) / (1e3 if found["unit"] == "ms" else 1.0)
                yield StepRecord(step, seconds)
        yield from peak_records(line.text)
        if (gib := _peak_gib(line.text)) is not None:
            rank = _RANK.search(line.text)
            yield MemoryRecord(gib, int(rank[1]) if rank else None)


def _peak_gib(text: str) -> float | None:
    unit = _MEMORY_UNIT.search(text)
    if unit is None:
        return None
    for patterns, name, units in ((_GIGABYTES, "GB", MEMORY_GIB), (_PEAKS, unit[1], TORCH_GIB)):
        for pattern in patterns:
            found = pattern.search(text)
            if found and (gib := memory_gib(f"{found[1]} {name}", units)):
                return gib
    return None


LOG = LogFormat(MegatronReader)
#: Messages of `training/arguments.py`, `TransformerConfig`, `parallel_state` and the schedules.
REJECTIONS = (
    r"world[_ ]size \(\d+\) is not divisible by",
    r"num_(?:attention_heads|query_groups) \(\d+\) must be a multiple of",
    r"global batch size \(\d+\) is not divisible by micro batch size",
    r"number of microbatches should be at least 1",
    r"number of microbatches \(\d+\) is not divisible by pipeline-model-parallel-size",
    r"contiguous micro-batches in a virtual pipeline stage",
    r"[Nn]umber of layers (?:of the model )?(?:should|must) be divisible",
    r"number of layers (?:at|per|on) .{0,120}must be divisible by",
    r"num_layers should be divisible by pipeline_model_parallel_size",
    r"must be divisible by virtual pipeline|should be divisible by vp_size",
    r"When interleaved schedule is used",
    r"pipeline-model-parallel size should be greater than \d+",
    r"seq-length should be a multiple of 2 \* context-parallel-size",
    r"Sequence length should be divisible by",
    r"AssertionError: \d+ is not divisible by \d+$",
    r"(?:always requires|setting the environment variable) CUDA_DEVICE_MAX_CONNECTIONS",
    r"MoE and tensor parallelism ?are enabled without also enabling sequence parallelism",
    r"Megatron FSDP only supports fsdp_dtensor checkpoint format",
    r"--[a-z0-9-]+ (?:is )?(?:only|not) supported with",
)

MEGATRON_LM = Framework(
    name="megatron-lm",
    title="Megatron-LM",
    version=VERSION,
    documentation=DOCUMENTATION,
    log=LOG,
    rules=rules,
    settings=settings,
    passed=_PASSED,
    unsaid=_unsaid,
    rejections=REJECTIONS,
    other_versions={"core 0.13": rules, "core 0.15": rules_0_15, "core 0.16": rules_0_16},
)
