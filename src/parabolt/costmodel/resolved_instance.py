"""The numbers of an instance that the cost model computes with, in SI units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from parabolt.errors import InstanceError
from parabolt.instances.hardware import Hardware

if TYPE_CHECKING:
    from parabolt.instances.model_shape import ModelShape
    from parabolt.instances.specs import Instance, Workload

#: Vocabulary where a model doesn't state one; about that of recent models (32 000 to 200 000).
_ASSUMED_VOCABULARY = 128_000


@dataclass(frozen=True)
class ResolvedInstance:
    """Model, workload and hardware of an instance, resolved.

    Attributes:
        n_layers: Layers.
        hidden: Hidden size.
        ffn: Inner size of the feed-forward block.
        query: Width of all queries.
        n_heads: Attention heads.
        kv: Width of all keys.
        vocabulary: Vocabulary, padded as the workload says.
        n_ffn_inputs: Matrices into the feed-forward block: 2 with a gate, 1 without.
        n_embeddings: Embedding tables: 1 if tied, else 2.
        sequence: Tokens per sequence.
        tokens: Tokens per iteration over all GPUs.
        micro_batch: Tokens per micro-batch of one model replica; None for pp x grad_accum
            micro-batches per iteration.
        n_gpus: GPUs.
        gpus_per_link_domain: GPUs that the fast links join, usually those of a host.
        capacity_gib: Memory of a GPU in GiB.
        recomputation: What is recomputed; see `Workload`.
        is_sequence_parallel: See `Workload`.
        is_attention_fused: See `Workload`.
        is_optimizer_sharded: See `Instance`.
        weight_bytes: Bytes per parameter.
        gradient_bytes: Bytes per parameter.
        optimizer_bytes: Bytes per parameter.
        hardware: Speeds.
        assumptions: What the instance doesn't state, in words.
    """

    n_layers: int
    hidden: int
    ffn: int
    query: int
    n_heads: int
    kv: int
    vocabulary: int
    n_ffn_inputs: int
    n_embeddings: int
    sequence: int
    tokens: int
    micro_batch: int | None
    n_gpus: int
    gpus_per_link_domain: int
    capacity_gib: float
    recomputation: str
    is_sequence_parallel: bool
    is_attention_fused: bool
    is_optimizer_sharded: bool
    weight_bytes: int
    gradient_bytes: int
    optimizer_bytes: int
    hardware: Hardware
    assumptions: tuple[str, ...]

    @classmethod
    def of(cls, instance: Instance) -> ResolvedInstance:
        """The numbers of an instance.

        Raises:
            UnknownNameError: If the instance names a GPU that the catalogue doesn't have.
            InstanceError: If the model has a part that no term describes.
        """
        model, cluster, work = instance.model, instance.cluster, instance.workload
        _refuse_undescribed(model, work)
        hardware = Hardware.of(cluster)
        assumptions = list(hardware.assumptions)
        if model.window is not None and model.window < work.sequence_length:
            assumptions.append(f"windows of {model.window} tokens counted as full attention")
        if model.vocabulary is None:
            assumptions.append(f"vocabulary not stated, {_ASSUMED_VOCABULARY}")
        micro_batch = work.micro_batch_size
        return cls(
            model.n_layers, model.hidden_size, model.ffn_size, model.query_size, model.n_heads,
            model.kv_size,
            -(-(model.vocabulary or _ASSUMED_VOCABULARY) // work.vocabulary_multiple)
            * work.vocabulary_multiple,
            2 if model.is_gated else 1, 1 if model.is_tied else 2,
            work.sequence_length,
            work.tokens_per_iteration or work.batch_size * work.sequence_length,
            None if micro_batch is None else micro_batch * work.sequence_length,
            cluster.n_gpus, cluster.gpus_per_link_domain, cluster.memory_gib, work.recomputation,
            work.is_sequence_parallel, work.is_attention_fused, instance.is_optimizer_sharded,
            work.weight_bytes, work.gradient_bytes, work.optimizer_state_bytes,
            hardware, tuple(assumptions),
        )  # fmt: skip

    @property
    def layer_matrices(self) -> tuple[int, int, int, int]:
        """Parameters of a layer's matrices: queries-keys-values, projection, in and out of FFN."""
        return (
            self.hidden * (self.query + 2 * self.kv),
            self.query * self.hidden,
            self.n_ffn_inputs * self.hidden * self.ffn,
            self.ffn * self.hidden,
        )

    @property
    def layer_parameters(self) -> int:
        """Parameters of one layer, norms left out (below 1e-4 of it)."""
        return sum(self.layer_matrices)

    @property
    def embedding_parameters(self) -> int:
        """Parameters of one embedding table."""
        return self.vocabulary * self.hidden

    @property
    def forward_passes(self) -> float:
        """Forward-equivalents of one iteration's compute: 1 forward, 2 backward, 1 recomputed."""
        return 3.0 if self.recomputation == "none" else 4.0


def _refuse_undescribed(model: ModelShape, work: Workload) -> None:
    for part in ("state_space", "experts", "latent_attention", "n_mtp_layers"):
        if getattr(model, part):
            raise InstanceError(f"{part}: the cost model does not describe them yet")
    if work.is_frozen:
        raise InstanceError("is_frozen: the cost model does not describe frozen weights yet")
    if work.sequences != "full":
        raise InstanceError(
            f"sequences: the cost model describes full ones only yet, got {work.sequences}"
        )
