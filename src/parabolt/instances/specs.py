"""What an instance is: a model shape, a cluster and a workload, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from parabolt.errors import InstanceError, UnknownNameError
from parabolt.instances.dialects import BOLT, load_dialect
from parabolt.instances.hardware import precision_units
from parabolt.instances.micro_batches import whole_micro_batches
from parabolt.instances.validation import (
    LARGEST_INT,
    require_bools,
    require_positive_ints,
    require_positive_numbers,
    stated,
)
from parabolt.space import rules
from parabolt.space.encoding import Encoding
from parabolt.space.knobs import KNOBS

if TYPE_CHECKING:
    from parabolt.instances.model_shape import ModelShape
    from parabolt.space.configuration import Configuration
    from parabolt.space.knobs import Knob
    from parabolt.space.rules import Rule


@dataclass(frozen=True)
class Cluster:
    """GPUs, hosts, memory and links.

    The optional fields matter to the cost model only. None stands for "not stated": the figure of
    `gpu` is taken, or that of an assumed GPU, which is then told.

    Attributes:
        n_gpus: GPUs in all.
        n_hosts: Hosts, each with the same number of GPUs.
        memory_gib: Memory of one GPU in GiB.
        gpu: Name of the GPU in the hardware catalogue.
        peak_bf16_tflops: Dense bf16 peak of a GPU in TFLOP/s.
        hbm_gb_per_s: Memory bandwidth of a GPU in GB/s.
        intra_host_gb_per_s: Link bandwidth of a GPU within its host, one direction, GB/s.
        inter_host_gb_per_s: Network bandwidth per GPU between hosts, one direction, GB/s.
        intra_host_latency_us: Latency within a host in microseconds.
        inter_host_latency_us: Latency between hosts in microseconds.
        peak_fp8_tflops: Dense fp8 peak of a GPU in TFLOP/s.
        peak_fp4_tflops: Dense fp4 peak of a GPU in TFLOP/s.
        link_domain_gpus: GPUs that the links of `intra_host_gb_per_s` join, where these are more
            than a host (72 in an NVL72); None for those of a host.

    Raises:
        InstanceError: For a figure that cannot be, such as no bandwidth.
    """

    n_gpus: int
    n_hosts: int
    memory_gib: float
    gpu: str | None = None
    peak_bf16_tflops: float | None = None
    hbm_gb_per_s: float | None = None
    intra_host_gb_per_s: float | None = None
    inter_host_gb_per_s: float | None = None
    intra_host_latency_us: float | None = None
    inter_host_latency_us: float | None = None
    peak_fp8_tflops: float | None = None
    peak_fp4_tflops: float | None = None
    link_domain_gpus: int | None = None

    def __post_init__(self) -> None:
        require_positive_ints(self, "n_gpus", "n_hosts", *stated(self, "link_domain_gpus"))
        optional = [f.name for f in fields(self) if f.name.endswith(("_s", "_us", "tflops"))]
        require_positive_numbers(self, "memory_gib", *stated(self, *optional))
        if self.gpu is not None and (not isinstance(self.gpu, str) or not self.gpu.strip()):
            raise InstanceError(f"gpu: expected a name, got {self.gpu!r}")
        if self.n_gpus % self.n_hosts:
            raise InstanceError(
                f"n_hosts: expected a divisor of the {self.n_gpus} GPUs, got {self.n_hosts}"
            )

        domain = self.link_domain_gpus
        if domain is not None and (domain % self.gpus_per_host or domain > self.n_gpus):
            raise InstanceError(
                f"link_domain_gpus: expected whole hosts of {self.gpus_per_host} GPUs, at most the "
                f"{self.n_gpus} GPUs, got {domain}"
            )

    @property
    def gpus_per_host(self) -> int:
        """GPUs in one host."""
        return self.n_gpus // self.n_hosts

    @property
    def gpus_per_link_domain(self) -> int:
        """GPUs that the fast links join: those of a host, or of several."""
        return self.link_domain_gpus or self.gpus_per_host


#: What is computed again in the backward pass instead of being stored: nothing; the whole of each
#: layer; or the whole of each model chunk at once.
RECOMPUTATIONS: tuple[str, ...] = ("none", "layer", "chunk")
#: What a sequence of the batch holds: tokens that all count; several documents, which attend to
#: themselves alone; or one document and padding that counts for nothing.
SEQUENCES: tuple[str, ...] = ("full", "packed", "padded")


@dataclass(frozen=True)
class PeakMemColumn:
    """How the tables of an instance state peak memory, where that is not in GiB.

    A figure of the column `peak_mem` is to `capacity` what the same peak in GiB is to the memory of
    a GPU in GiB. So the memory margin is the same in both.

    Attributes:
        unit: The unit's name on the data-set card.
        capacity: Memory of one GPU, as the card states it.

    Raises:
        InstanceError: For a figure that cannot be.
    """

    unit: str
    capacity: float

    def __post_init__(self) -> None:
        if not isinstance(self.unit, str) or not self.unit:
            raise InstanceError(f"unit: expected a text, got {self.unit!r}")
        require_positive_numbers(self, "capacity")


@dataclass(frozen=True)
class Workload:
    """What is trained per iteration.

    The optional fields matter to the cost model only.

    Attributes:
        sequence_length: Tokens per sequence.
        batch_size: Batch size as the data-set card states it.
        tokens_per_iteration: Tokens of one iteration over all GPUs; None for
            batch_size x sequence_length.
        micro_batch_size: Sequences per micro-batch of a pipeline. None for the rule that an
            iteration has pp x grad_accum micro-batches.
        recomputation: One of `RECOMPUTATIONS`.
        is_sequence_parallel: Whether every tensor-parallel group is sequence-parallel as well,
            whatever the knob sp says.
        is_attention_fused: Whether attention never writes its scores (FlashAttention).
        is_optimizer_sharded: Whether data-parallel ranks share the optimizer states at ZeRO 0
            (Megatron-LM's distributed optimizer), as in the published tables; see
            `Instance.is_optimizer_sharded`.
        optimizer_state_bytes: Bytes per parameter of optimizer states and master weights.
        gradient_bytes: Bytes per parameter of the gradient buffer.
        weight_bytes: Bytes per parameter of the weights that are computed with (bf16: 2).
        sequences: One of `SEQUENCES`.
        document_tokens: Mean tokens of a document, where sequences are packed or padded; None for
            not stated.
        is_frozen: Whether the weights are frozen and adapters are trained instead (LoRA, arXiv
            2106.09685).
        adapter_rank: Rank of the adapters; None for not stated.
        vocabulary_multiple: Entries to a multiple of which the vocabulary is padded (Megatron-LM:
            128 x tp).

    Raises:
        InstanceError: For a figure that cannot be.
    """

    sequence_length: int
    batch_size: int
    tokens_per_iteration: int | None = None
    micro_batch_size: int | None = None
    recomputation: str = "none"
    is_sequence_parallel: bool = False
    is_attention_fused: bool = True
    is_optimizer_sharded: bool | None = None
    optimizer_state_bytes: int = 12
    gradient_bytes: int = 4
    weight_bytes: int = 2
    sequences: str = "full"
    document_tokens: int | None = None
    is_frozen: bool = False
    adapter_rank: int | None = None
    vocabulary_multiple: int = 1

    def __post_init__(self) -> None:
        required = ("sequence_length", "batch_size", "vocabulary_multiple")
        bytes_ = ("optimizer_state_bytes", "gradient_bytes", "weight_bytes")
        optional = ("micro_batch_size", "document_tokens", "adapter_rank")
        require_positive_ints(self, *required, *bytes_, *stated(self, *optional))
        require_positive_ints(self, *stated(self, "tokens_per_iteration"), most=LARGEST_INT**2)
        require_bools(
            self,
            "is_sequence_parallel",
            "is_attention_fused",
            "is_frozen",
            *stated(self, "is_optimizer_sharded"),
        )
        if self.recomputation not in RECOMPUTATIONS:
            raise InstanceError(
                f"recomputation: expected one of {', '.join(RECOMPUTATIONS)}, "
                f"got {self.recomputation!r}"
            )
        self._check_documents()

    def _check_documents(self) -> None:
        """What is said of documents and adapters is said of a batch that has them."""
        if self.sequences not in SEQUENCES:
            raise InstanceError(
                f"sequences: expected one of {', '.join(SEQUENCES)}, got {self.sequences!r}"
            )
        tokens, length = self.document_tokens, self.sequence_length
        if tokens is not None and (self.sequences == "full" or tokens > length):
            raise InstanceError(
                f"document_tokens: expected packed or padded sequences and at most their {length} "
                f"tokens, got {tokens} of {self.sequences} sequences"
            )
        if self.adapter_rank is not None and not self.is_frozen:
            raise InstanceError(
                f"adapter_rank: expected is_frozen = true beside it, got {self.adapter_rank} alone"
            )


@dataclass(frozen=True)
class Instance:
    """A model on a cluster with a workload, and the knobs that are searched.

    Attributes:
        name: Short name.
        model: Model shape.
        cluster: Cluster.
        workload: Workload.
        levels: Per knob the values that are searched, ascending. A knob with one value is a
            constant, and a knob that is left out is neutral. Once made, they are in canonical order
            and complete.
        max_virtual_stages: Cap on pp x chunks where chunks > 1; None for no cap.
        peak_mem: How published tables of the instance state peak memory; None for GiB.
        dialect: Whose configurations are valid; see `load_dialect`.

    Raises:
        InstanceError: If a value cannot be.
    """

    name: str
    model: ModelShape
    cluster: Cluster
    workload: Workload
    levels: tuple[tuple[str, tuple[int, ...]], ...]
    max_virtual_stages: int | None = None
    peak_mem: PeakMemColumn | None = None
    dialect: str = BOLT

    def __post_init__(self) -> None:
        if not isinstance(self.dialect, str):
            raise InstanceError(f"{self.name}, dialect: expected a name, got {self.dialect!r}")
        try:
            load_dialect(self.dialect)
        except UnknownNameError as error:
            raise InstanceError(f"{self.name}: {error}") from error
        require_positive_ints(self, *stated(self, "max_virtual_stages"))
        given = dict(self.levels)
        if len(given) < len(self.levels) or not given.keys() <= KNOBS.keys():
            names = [name for name, _ in self.levels]
            raise InstanceError(
                f"{self.name}: expected levels of knobs among {', '.join(KNOBS)}, got {names}"
            )
        levels = tuple(
            (name, given[name] if name in given else _neutral_levels(self.name, knob))
            for name, knob in KNOBS.items()
        )
        for name, values in levels:
            _check_levels(self.name, name, values)
        object.__setattr__(self, "levels", levels)
        self._check_said_once()

    def _check_said_once(self) -> None:
        """What the workload states is not said by a knob as well."""
        work, levels = self.workload, dict(self.levels)
        for field, is_stated, knob in (
            ("micro_batch_size", work.micro_batch_size is not None, "micro_batch"),
            ("recomputation", work.recomputation != "none", "recompute"),
        ):
            if is_stated and levels[knob] != (KNOBS[knob].neutral,):
                raise InstanceError(
                    f"{self.name}: expected {field} of the workload or the knob {knob}, got both"
                )
        if work.is_optimizer_sharded and 1 in levels["zero"]:
            raise InstanceError(
                f"{self.name}: expected ZeRO 0 that shards nothing where ZeRO 1 is listed, got "
                "is_optimizer_sharded = true"
            )

    @property
    def peak_mem_column(self) -> PeakMemColumn:
        """Unit of the column `peak_mem` in tables of this instance, and a GPU's memory in it."""
        return self.peak_mem or PeakMemColumn("GiB", self.cluster.memory_gib)

    @property
    def gib_per_peak_mem(self) -> float:
        """GiB of one unit of the column `peak_mem`."""
        return self.cluster.memory_gib / self.peak_mem_column.capacity

    @cached_property
    def encoding(self) -> Encoding:
        """The search encoding of this instance's configurations."""
        return Encoding(dict(self.levels))

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """Everything a valid configuration of this instance meets, each rule once."""
        found = (*load_dialect(self.dialect)(self), *self._knob_rules())
        return tuple({rule.name: rule for rule in found}.values())

    def _knob_rules(self) -> tuple[Rule, ...]:
        """Listed values, and where the knobs belong that are not neutral throughout."""
        used = [KNOBS[name] for name, values in self.levels if values != (KNOBS[name].neutral,)]
        belonging = (rules.belongs(knob) for knob in used)
        has_micro_batches = any(knob.name == "micro_batch" for knob in used)
        return (
            *(rule for rule in belonging if rule is not None),
            *((whole_micro_batches(self.workload),) if has_micro_batches else ()),
            *(rule for rule in self._group_rules() if rule.knobs[0] in {k.name for k in used}),
            *(rules.allowed_sizes(name, values) for name, values in self.levels),
        )

    def _group_rules(self) -> tuple[Rule, ...]:
        """What the groups of new knobs are parts of; the first knob of a rule is the new one."""
        experts = self.model.experts
        return (
            rules.experts_divisible(experts.n_experts if experts else 1),
            rules.expert_ranks(),
            rules.expert_tensor_parallel(),
            rules.shards_divisible(),
            rules.ulysses_in_context(),
            precision_units(self.cluster),
        )

    @property
    def is_optimizer_sharded(self) -> bool:
        """Whether ranks share the optimizer states at ZeRO 0, so that it acts like ZeRO 1.

        So it is in the published tables and wherever stages 0, 2 and 3 are told apart only. Where
        stage 1 is searched as well, 0 shards nothing.
        """
        stated = self.workload.is_optimizer_sharded
        return 1 not in dict(self.levels)["zero"] if stated is None else stated

    def zero_stage(self, zero: Any) -> Any:
        """The ZeRO stage that acts at a value of the knob, or at a column of values."""
        return zero + (zero == 0) * self.is_optimizer_sharded

    def check(self, configuration: Configuration) -> None:
        """Raises unless a configuration is valid for this instance.

        Raises:
            InvalidConfigurationError: With the reasons of all rules that are broken.
        """
        rules.check(configuration, self.rules)

    def __getstate__(self) -> dict[str, object]:
        return {f.name: getattr(self, f.name) for f in fields(self)}  # caches are made anew


def _neutral_levels(instance: str, knob: Knob) -> tuple[int, ...]:
    if knob.neutral is None:
        raise InstanceError(f"{instance}: expected levels of {knob.name}, got none")
    return (knob.neutral,)


def _check_levels(instance: str, name: str, values: tuple[int, ...]) -> None:
    scale = KNOBS[name].scale
    is_whole = all(isinstance(v, int) and not isinstance(v, bool) for v in values)
    if not is_whole or not scale.allows_list(values):
        found = ", ".join(map(scale.word, values) if is_whole else map(repr, values))
        raise InstanceError(
            f"{instance}, levels of {name}: expected ascending values, each {scale.words}, "
            f"got [{found}]"
        )
