"""Compute time of the heaviest stage: one function per term, in seconds per iteration.

Every function gives what the specifications promise, (n,) float64; what a real machine needs more
is the term's coefficient. Symbols: P parameters of a layer, t tokens per context rank and
iteration, h hidden size, l layers of a stage, k forward-equivalents (3, or 4 with recomputation).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from parabolt.costmodel.layout import Layout
    from parabolt.outcome import FloatArray

#: Kernels of one layer and pass, and the time between two launches (about 4 microseconds).
_KERNELS_PER_LAYER, _LAUNCH_S = 12, 4e-6
#: Bytes of an activation.
_ACTIVATION_BYTES = 2


def matmul(x: Layout) -> FloatArray:
    """Matrix products of the layers at peak speed: k 2 P l t / (tp peak) (arXiv 2104.04473)."""
    s = x.instance
    flops = s.forward_passes * 2.0 * s.layer_parameters * x.stage_layers * x.rank_tokens / x.tp
    return flops / s.hardware.peak_flop_per_s


def tensor_shards(x: Layout) -> FloatArray:
    """Matrix products slowed by narrow shards: compute x log2 tp, pipeline idle time included.

    Tile and wave quantisation cost about the same for each halving of a matrix's width.
    """
    return matmul(x) * np.log2(x.tp) * (1.0 + x.bubble)


def attention(x: Layout) -> FloatArray:
    """Causal attention at peak speed: (k + 1/2) 2 S q l t / (tp peak).

    S sequence length, q width of the queries; half of the scores are masked, and the backward pass
    of FlashAttention costs 2.5 forward passes (arXiv 2307.08691, section 4.1).
    """
    s = x.instance
    flops = 2.0 * s.sequence * s.query * x.stage_layers * x.rank_tokens / x.tp
    return (s.forward_passes + 0.5) * flops / s.hardware.peak_flop_per_s


def attention_scores(x: Layout) -> FloatArray:
    """Memory traffic of attention scores where attention isn't fused: k 8 a S l t / (tp HBM).

    a heads; a pass writes and reads scores, mask, softmax and dropout, 2 bytes each
    (arXiv 2205.05198, section 4.1, counts the same tensors).
    """
    s = x.instance
    if s.is_attention_fused:
        return np.zeros(len(x))
    scores = s.n_heads * s.sequence * x.stage_layers * x.rank_tokens / x.tp
    count = s.forward_passes * 8.0 * scores
    return _ACTIVATION_BYTES * count / s.hardware.hbm_byte_per_s


def logits(x: Layout) -> FloatArray:
    """Output projection on the last stage, the heaviest: 6 V h t / (tp peak); never recomputed."""
    s = x.instance
    return 6.0 * s.embedding_parameters * x.rank_tokens / x.tp / s.hardware.peak_flop_per_s


def kernel_io(x: Layout) -> FloatArray:
    """Memory traffic of the sharded kernels: k l (weights per micro-batch + activations) / HBM.

    Weights are read once per micro-batch and pass; each activation of a layer is written once and
    read once. It is what keeps small matrices from peak speed (roofline model).
    """
    s = x.instance
    weights = x.n_micro * s.layer_parameters
    widths = 2.0 * s.query + 2.0 * s.kv + (s.n_ffn_inputs + 1.0) * s.ffn
    activations = x.rank_tokens * 2.0 * widths
    count = s.forward_passes * x.stage_layers * (weights + activations) / x.tp
    return _ACTIVATION_BYTES * count / s.hardware.hbm_byte_per_s


def norm_io(x: Layout) -> FloatArray:
    """Memory traffic of norms and residuals: k l 8 t h / HBM, over tp only where sp is on.

    Without sequence parallelism every tensor rank does this work in full (arXiv 2205.05198, 4.2.2).
    """
    s = x.instance
    shares = np.where(x.is_sp, x.tp, 1.0)
    count = s.forward_passes * x.stage_layers * 8.0 * x.rank_tokens * s.hidden / shares
    return _ACTIVATION_BYTES * count / s.hardware.hbm_byte_per_s


def launch(x: Layout) -> FloatArray:
    """Kernel launches that the GPU waits for: a^2 / (a + b).

    a = k l micro-batches x kernels per layer x time per launch; b is the kernels' own time.
    Launches run ahead of the GPU, so they matter only where kernels are short: a smooth
    max(0, a - b).
    """
    passes = x.instance.forward_passes * x.stage_layers * x.n_micro
    launches = passes * _KERNELS_PER_LAYER * _LAUNCH_S
    return launches**2 / (launches + matmul(x) + kernel_io(x))


def pipeline_bubble(x: Layout) -> FloatArray:
    """Idle time of the pipeline: (pp - 1) / (chunks m) of the layers' compute (see `bubble`)."""
    return x.bubble * (matmul(x) + attention(x))


def optimizer(x: Layout) -> FloatArray:
    """Optimizer step: states read and written, gradients read, weights written / (shards HBM)."""
    s = x.instance
    shards = np.where(x.is_optimizer_whole, 1.0, x.n_shards)
    per_parameter = 2.0 * s.optimizer_bytes + s.gradient_bytes + s.weight_bytes
    return x.stage_parameters / shards * per_parameter / s.hardware.hbm_byte_per_s


def fixed(x: Layout) -> FloatArray:
    """What an iteration needs whatever its configuration (data loading, logging): 10 ms."""
    return np.full(len(x), 0.01)
