"""Communication time: one function per term, in seconds per iteration.

Every function gives what link speeds promise without overlap, (n,) float64; overlap and the
efficiency of a collective are the term's coefficient. Symbols as in `compute`; V = t h 2 bytes is
the volume of an activation, n = dp cp the ranks that share a parameter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from parabolt.costmodel.layout import Layout
    from parabolt.outcome import FloatArray

_ACTIVATION_BYTES = 2
#: Start of a blocking collective beside its messages: launch by the host, waiting of streams and of
#: ranks for each other. An order of magnitude: a message alone takes 0.02 ms, and pco32, pco64 and
#: vTrain's A100 clusters all ask for 0.3 to 1 ms.
_START_S = 200e-6
#: Waiting for the slowest rank, as a fraction of compute per doubling of the ranks.
_SKEW = 0.01


def _layer_collectives(x: Layout) -> FloatArray:
    """All-reduces of a stage, in activations: two per layer and pass through it.

    Forward and backward each have two (arXiv 1909.08053, section 3); recomputation repeats the
    forward ones. Idle ranks wait for the stages before them, hence the bubble.
    """
    return 2.0 * (x.instance.forward_passes - 1.0) * x.stage_layers * (1.0 + x.bubble)


def tensor_bandwidth(x: Layout) -> FloatArray:
    """Ring all-reduce of activations over tp: 2 (tp - 1) / tp V / bandwidth per collective.

    With sequence parallelism it is a reduce-scatter and an all-gather of the same volume
    (arXiv 2205.05198, section 4.2.2).
    """
    volume = x.rank_tokens * x.instance.hidden * _ACTIVATION_BYTES
    ones = np.ones_like(x.tp)
    ring = 2.0 * (x.tp - 1.0) / x.tp * volume / x.bandwidth(ones, x.tp)
    return _layer_collectives(x) * ring


def tensor_sync(x: Layout) -> FloatArray:
    """Start of the tensor-parallel collectives, one per micro-batch and all-reduce."""
    return np.where(x.tp > 1.0, _layer_collectives(x) * x.n_micro * _START_S, 0.0)


def _context_steps(x: Layout) -> FloatArray:
    """Steps of ring attention (arXiv 2310.01889): cp - 1 per layer and pass."""
    return (x.cp - 1.0) * x.instance.forward_passes * x.stage_layers * (1.0 + x.bubble)


def context_bandwidth(x: Layout) -> FloatArray:
    """Keys and values handed round: (cp - 1) steps of t 2 kv / tp x 2 bytes over a link."""
    s = x.instance
    volume = x.rank_tokens * 2.0 * s.kv / x.tp * _ACTIVATION_BYTES
    link = np.where(
        x.is_across(x.tp, x.cp),
        s.hardware.inter_host_byte_per_s,
        s.hardware.intra_host_byte_per_s,
    )
    return _context_steps(x) * volume / link


def context_sync(x: Layout) -> FloatArray:
    """Start of the steps of ring attention, one per micro-batch and step."""
    return _context_steps(x) * x.n_micro * _START_S


def context_contention(x: Layout) -> FloatArray:
    """Ring attention across hosts while ZeRO 2 or 3 uses the same network: its time once more.

    Two flows through one network card share it.
    """
    contends = ~x.is_z0 & x.is_across(x.tp, x.cp)
    return np.where(contends, context_bandwidth(x), 0.0)


def _pipeline_messages(x: Layout) -> FloatArray:
    """Messages to the next stage on the longest path: 2 chunks (m + pp - 1).

    Forward and backward, once per chunk and micro-batch, plus the filling of the pipeline.
    """
    return np.where(x.pp > 1.0, 2.0 * x.chunks * (x.n_micro + x.pp - 1.0), 0.0)


def pipeline_bandwidth(x: Layout) -> FloatArray:
    """Activations and their gradients handed to the next stage.

    Without sequence parallelism every tensor rank sends the whole activation.
    """
    s = x.instance
    shares = np.where(x.is_sp, x.tp, 1.0)
    volume = x.micro_tokens * s.hidden * _ACTIVATION_BYTES / shares
    link = np.where(
        x.is_across(x.tp * x.cp * x.dp, x.pp),
        s.hardware.inter_host_byte_per_s,
        s.hardware.intra_host_byte_per_s,
    )
    return _pipeline_messages(x) * volume / link


def pipeline_sync(x: Layout) -> FloatArray:
    """Start of the stage-to-stage messages."""
    return _pipeline_messages(x) * _START_S


def _ring_s_per_byte(x: Layout) -> FloatArray:
    """Seconds per byte of a parameter buffer reduced or gathered over the dp x cp ranks.

    (n - 1) / n of the buffer passes each rank (bandwidth-optimal ring).
    """
    n = x.n_shards
    return (n - 1.0) / n / x.bandwidth(x.tp, n)


def data_bandwidth(x: Layout) -> FloatArray:
    """ZeRO 0: gradients reduced and weights gathered once per iteration, not overlapped."""
    s = x.instance
    volume = x.stage_parameters * (s.gradient_bytes + s.weight_bytes)
    return np.where(x.is_z0, volume * _ring_s_per_byte(x), 0.0)


def data_skew(x: Layout) -> FloatArray:
    """Waiting for the slowest of n ranks: 1 % of compute per doubling of n, at any ZeRO stage.

    The expected maximum of n times with light tails grows with log n.
    """
    s = x.instance
    flops = s.forward_passes * 2.0 * s.n_layers * s.layer_parameters * s.tokens / s.n_gpus
    return _SKEW * flops / s.hardware.peak_flop_per_s * np.log2(x.n_shards)


def layers_per_bucket(x: Layout) -> FloatArray:
    """Layers whose gradients share a bucket, on average.

    A bucket closes with the matrix that fills it, so its mean size is the nominal one plus the mean
    overshoot, E[s^2] / 2 E[s] over the matrices' sizes s (renewal theory).
    """
    s = x.instance
    sizes = np.array(s.layer_matrices, dtype=np.float64)
    overshoot = float((sizes**2).sum() / (2.0 * sizes.sum()))
    return (x.bucket * x.tp + overshoot) / s.layer_parameters


def _zero2_reduce(x: Layout) -> FloatArray:
    volume = x.n_micro * x.instance.gradient_bytes * x.stage_parameters
    return np.where(x.is_z2, volume * _ring_s_per_byte(x), 0.0)


def zero2_bandwidth(x: Layout) -> FloatArray:
    """ZeRO 2: gradients scattered per micro-batch, weights gathered once (arXiv 1910.02054, 7)."""
    gather = x.instance.weight_bytes * x.stage_parameters * _ring_s_per_byte(x)
    return _zero2_reduce(x) + np.where(x.is_z2, gather, 0.0)


def zero2_span(x: Layout) -> FloatArray:
    """ZeRO 2: the part of the gradients that waits because its bucket spans layers.

    A bucket is sent when the last of its layers is through, so all but one of its q layers come
    too late to hide behind their own backward pass: 1 - 1/q of the volume.
    """
    return _zero2_reduce(x) * np.maximum(0.0, 1.0 - 1.0 / layers_per_bucket(x))


def zero2_buckets(x: Layout) -> FloatArray:
    """ZeRO 2: latency of one ring per bucket, n - 1 messages each."""
    n_rings = x.n_micro * x.stage_layers / layers_per_bucket(x)
    latency = (x.n_shards - 1.0) * x.latency(x.tp, x.n_shards)
    return np.where(x.is_z2, n_rings * latency, 0.0)


def zero3_bandwidth(x: Layout) -> FloatArray:
    """ZeRO 3: weights gathered for both passes, gradients scattered, per micro-batch."""
    s = x.instance
    volume = x.n_micro * (2.0 * s.weight_bytes + s.gradient_bytes) * x.stage_parameters
    return np.where(x.is_z3, volume * _ring_s_per_byte(x), 0.0)


def zero3_layers(x: Layout) -> FloatArray:
    """ZeRO 3: latency of three rings per layer and micro-batch, n - 1 messages each."""
    n_rings = 3.0 * x.n_micro * x.stage_layers
    latency = (x.n_shards - 1.0) * x.latency(x.tp, x.n_shards)
    return np.where(x.is_z3, n_rings * latency, 0.0)
