"""Where a configuration puts its work: group sizes, placement, micro-batches and shards.

Groups are placed innermost first, in the order tensor, context, data, pipeline (as Megatron-LM
does), so that a group that fits in a host stays in it. All arrays are (n,) float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from parabolt.errors import InvalidConfigurationError
from parabolt.space.configuration import Configuration, are_configurations
from parabolt.space.configurations import Configurations
from parabolt.space.knobs import KNOBS, Precision

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from parabolt.costmodel.resolved_instance import ResolvedInstance
    from parabolt.instances.specs import Instance
    from parabolt.outcome import BoolArray, FloatArray, IntArray

#: Knobs that terms describe. Any other one must be neutral.
DESCRIBED = (
    "dp", "tp", "pp", "cp", "sp", "bucket", "zero", "chunks", "grad_accum", "micro_batch",
    "first_layers", "last_layers",
)  # fmt: skip
#: Values of other knobs that act as the neutral one: fp16 has the bytes and the peak of bf16.
_AS_NEUTRAL: dict[str, tuple[int, ...]] = {"precision": (Precision.FP16,)}


@dataclass(frozen=True, eq=False)
class Layout:
    """Derived columns of n configurations.

    Attributes:
        instance: The instance's numbers.
        dp: Data-parallel size.
        tp: Tensor-parallel size.
        pp: Pipeline stages.
        cp: Context-parallel size.
        chunks: Model chunks per stage.
        bucket: Gradient bucket in parameters; the knob's "MB" count parameters (1e6 each), as the
            bucket size of Megatron-LM does.
        is_sp: Whether sequence parallelism is on (sp > 1); its size follows tp.
        is_z0: ZeRO stage 0 or 1: gradients and weights not sharded.
        is_z2: ZeRO stage 2: gradients sharded too.
        is_z3: ZeRO stage 3: weights sharded too.
        is_optimizer_whole: Whether optimizer states are not sharded either.
        n_shards: Ranks that share optimizer states: dp x cp.
        n_micro: Micro-batches per iteration.
        rank_tokens: Tokens of an iteration that one context rank of one replica sees.
        micro_tokens: The same, of one micro-batch.
        stage_layers: Layers of the stage with most of them.
        chunk_layers: Layers per model chunk of it.
        stage_parameters: Parameters of a GPU on the heaviest stage.
        bubble: Idle time of the pipeline as a fraction of its work.
    """

    instance: ResolvedInstance
    dp: FloatArray
    tp: FloatArray
    pp: FloatArray
    cp: FloatArray
    chunks: FloatArray
    bucket: FloatArray
    is_sp: BoolArray
    is_z0: BoolArray
    is_z2: BoolArray
    is_z3: BoolArray
    is_optimizer_whole: BoolArray
    n_shards: FloatArray
    n_micro: FloatArray
    rank_tokens: FloatArray
    micro_tokens: FloatArray
    stage_layers: FloatArray
    chunk_layers: FloatArray
    stage_parameters: FloatArray
    bubble: FloatArray

    @classmethod
    def of(cls, instance: ResolvedInstance, sizes: Configurations) -> Layout:
        """The layout of configurations.

        Raises:
            InvalidConfigurationError: If a knob is not neutral that no term describes.
        """
        _refuse_undescribed(sizes)
        dp, tp, pp, cp, chunks, bucket, accum = (
            np.asarray(getattr(sizes, name), dtype=np.float64)
            for name in ("dp", "tp", "pp", "cp", "chunks", "bucket", "grad_accum")
        )
        zero = np.asarray(sizes.zero)
        n_shards = dp * cp
        n_micro, micro_tokens = _micro_batches(instance, dp, pp, accum, sizes.micro_batch)
        micro_tokens = micro_tokens / cp
        layers, chunk_layers, parameters = _heaviest(instance, pp, chunks, sizes)
        return cls(
            instance, dp, tp, pp, cp, chunks, 1e6 * bucket,
            (np.asarray(sizes.sp) > 1) | (instance.is_sequence_parallel & (tp > 1)),
            zero <= 1, zero == 2, zero == 3,
            (zero == 0) & (not instance.is_optimizer_sharded),
            n_shards, n_micro, n_micro * micro_tokens, micro_tokens, layers, chunk_layers,
            parameters / tp,
            bubble(pp, chunks, n_micro),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.dp)

    def in_host(self, inner: FloatArray, size: FloatArray) -> FloatArray:
        """Ranks of a group that share a host, where `inner` GPUs lie between neighbours."""
        return np.clip(self.instance.gpus_per_link_domain / inner, 1.0, size)

    def bandwidth(self, inner: FloatArray, size: FloatArray) -> FloatArray:
        """Byte/s that a rank gets through a ring over a group.

        A ring within a host runs at link speed (on a mesh, at the share of the links that lead to
        the group). A ring across hosts leaves each host through the network cards of all ranks
        that the group has there, and is never faster than within.
        """
        hardware, near = self.instance.hardware, self.in_host(inner, size)
        links = hardware.intra_host_byte_per_s
        if hardware.is_mesh:
            others = max(self.instance.gpus_per_link_domain - 1, 1)
            within = links * np.maximum(np.minimum(near, others + 1) - 1.0, 1.0) / others
        else:
            within = np.full(len(size), links)
        across = np.minimum(within, near * hardware.inter_host_byte_per_s)
        return np.where(size > near, across, within)

    def is_across(self, inner: FloatArray, size: FloatArray) -> BoolArray:
        """Whether a group spans hosts."""
        return np.greater(size * inner, self.instance.gpus_per_link_domain) & (size > 1.0)

    def latency(self, inner: FloatArray, size: FloatArray) -> FloatArray:
        """Seconds per message of a group: that of the slowest link in it."""
        hardware = self.instance.hardware
        across = self.is_across(inner, size)
        return np.where(across, hardware.inter_host_latency_s, hardware.intra_host_latency_s)


def described_values(name: str, values: tuple[int, ...]) -> tuple[int, ...]:
    """Those values of a knob that a configuration may have here."""
    if name in DESCRIBED:
        return values
    as_neutral = (KNOBS[name].neutral, *_AS_NEUTRAL.get(name, ()))
    return tuple(value for value in values if value in as_neutral)


def _refuse_undescribed(sizes: Configurations) -> None:
    for name, values in sizes.stated().items():
        knob = KNOBS[name]
        if name in DESCRIBED or not (is_set := values != knob.neutral).any():
            continue
        for value in _AS_NEUTRAL.get(name, ()):
            is_set &= values != value
        if not is_set.any():
            continue
        found = knob.text(int(values[np.argmax(is_set)]))
        raise InvalidConfigurationError(
            f"{found}: expected a knob that the cost model describes ({', '.join(DESCRIBED)}), got "
            f"{name}; try an instance without it, or an optimizer that uses no cost model"
        )


def _heaviest(
    instance: ResolvedInstance, pp: FloatArray, chunks: FloatArray, sizes: Configurations
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Layers of the heaviest stage and of its chunks, and parameters of the heaviest, each (n,).

    An end of the pipeline holds an embedding table as well, so it can have most parameters without
    having most layers.
    """
    n_layers, per_layer = instance.n_layers, instance.layer_parameters
    tables = np.where(pp == 1.0, instance.n_embeddings, 1.0) * instance.embedding_parameters
    if not (sizes.first_layers.any() or sizes.last_layers.any()):
        layers = n_layers / pp
        return layers, layers / chunks, layers * per_layer + tables
    first, last = (np.asarray(x, dtype=np.float64) for x in (sizes.first_layers, sizes.last_layers))
    n_middle = pp - (first > 0) - (last > 0)
    middle = (n_layers - first - last) / np.maximum(n_middle, 1.0)
    end = np.maximum(np.where(first > 0, first, middle), np.where(last > 0, last, middle))
    layers = np.maximum(middle, end)
    is_stated = (first > 0) | (last > 0)
    chunk_layers = np.where(is_stated, np.ceil(layers / chunks), layers / chunks)
    return layers, chunk_layers, np.maximum(middle * per_layer, end * per_layer + tables)


def _micro_batches(
    instance: ResolvedInstance,
    dp: FloatArray,
    pp: FloatArray,
    grad_accum: FloatArray,
    micro_batch: IntArray,
) -> tuple[FloatArray, FloatArray]:
    """Micro-batches per iteration, and the tokens of one.

    A stated size is what every micro-batch has, the last one padded. Without it an iteration has
    pp x grad_accum micro-batches that share a replica's tokens.
    """
    replica_tokens = instance.tokens / dp
    of_workload = instance.micro_batch or 0
    stated = np.where(micro_batch > 0, micro_batch * float(instance.sequence), of_workload)
    n_micro = np.where(
        stated > 0, np.ceil(replica_tokens / np.maximum(stated, 1.0)), pp * grad_accum
    )
    return n_micro, np.where(stated > 0, stated, replica_tokens / n_micro)


def bubble(pp: FloatArray, chunks: FloatArray, n_micro: FloatArray) -> FloatArray:
    """Idle fraction of a 1F1B pipeline, interleaved with `chunks` > 1.

    (pp - 1) / (chunks x micro-batches) of the work of all micro-batches (arXiv 2104.04473,
    section 2.2); dimensionless.
    """
    return (pp - 1.0) / (chunks * n_micro)


def configurations_of(
    instance: Instance, X: npt.ArrayLike | Sequence[Configuration] | Configurations
) -> Configurations:
    """Configurations by the column, of a list, of encoded rows (n, d), or of columns already."""
    if isinstance(X, Configurations):
        return X
    if are_configurations(X):
        return Configurations.of(X)
    return instance.encoding.configurations(np.asarray(X))
