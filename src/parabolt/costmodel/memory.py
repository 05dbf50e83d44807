"""Peak memory of a GPU on the heaviest stage: one function per term.

Every function gives bytes (n,) float64. Reports are in GB of 2^30 bytes, as PyTorch's and the
measured tables' figures are. Symbols: P parameters of a GPU on the heaviest stage, n = dp cp ranks
that share them, t tokens per context rank and micro-batch, h hidden size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parabolt.costmodel.term import Term

if TYPE_CHECKING:
    from parabolt.costmodel.layout import Layout
    from parabolt.outcome import FloatArray

#: Bytes of a GB in this package's memory figures.
GB = 2.0**30
_ACTIVATION_BYTES = 2
#: Bytes per logit of the loss: bf16, its fp32 copy, and the gradient in fp32.
_LOGIT_BYTES = 2 + 4 + 4


def weights(x: Layout) -> FloatArray:
    """Weights that are computed with: P, or P / n under ZeRO 3 (arXiv 1910.02054, 5.3)."""
    return x.setting.weight_bytes * x.stage_parameters / np.where(x.is_z3, x.n_shards, 1.0)


def gradients(x: Layout) -> FloatArray:
    """Gradient buffer: P, or P / n under ZeRO 2 and 3 (arXiv 1910.02054, section 5.2)."""
    return x.setting.gradient_bytes * x.stage_parameters / np.where(x.is_z0, 1.0, x.n_shards)


def optimizer_states(x: Layout) -> FloatArray:
    """Optimizer states and master weights: P / n (arXiv 1910.02054, section 5.1)."""
    is_whole = x.is_z0 & (not x.setting.is_optimizer_sharded)
    shards = np.where(is_whole, 1.0, x.n_shards)
    return x.setting.optimizer_bytes * x.stage_parameters / shards


def shard_copies(x: Layout) -> FloatArray:
    """ZeRO 2 and 3: working copies of a rank's shard (fp32 weights and gradients), 8 P / n."""
    return np.where(x.is_z0, 0.0, 8.0 * x.stage_parameters / x.n_shards)


def gathered_weights(x: Layout) -> FloatArray:
    """ZeRO 3: two layers and the embedding tables gathered, as weights and as gradients."""
    s = x.setting
    gathered = 2.0 * s.layer_parameters + s.n_embeddings * s.embedding_parameters
    return np.where(x.is_z3, 2.0 * s.weight_bytes * gathered / x.tp, 0.0)


def bucket_buffers(x: Layout) -> FloatArray:
    """ZeRO 2 and 3: a bucket in flight; one that an embedding table fits into holds it as well."""
    s = x.setting
    table = s.embedding_parameters / x.tp
    merged = np.where(x.bucket > table, 4.0 * s.weight_bytes * table, 0.0)
    own = np.where(x.is_z2, s.gradient_bytes * np.minimum(x.bucket, x.stage_parameters), 0.0)
    return np.where(x.is_z0, 0.0, own + merged)


def _sharded_bytes(x: Layout) -> FloatArray:
    """Activations of one layer and micro-batch that tensor ranks share (arXiv 2205.05198, 4.1).

    Per token: two norms' outputs 4 h; queries, keys and values before and after rotation and the
    attention's output 2 (3 q + 3 kv) ; the inputs of the activation function 2 f each, and its
    output 2 f unless something is recomputed. Fused attention keeps no scores; an unfused one keeps
    5 a S per token.
    """
    s = x.setting
    widths = 2.0 * s.hidden + 3.0 * s.query + 3.0 * s.kv + s.n_ffn_inputs * s.ffn
    if s.recomputation == "none":
        widths += s.ffn
    scores = 0.0 if s.is_attention_fused else 5.0 * s.n_heads * s.sequence
    return x.micro_tokens * (_ACTIVATION_BYTES * widths + scores) / x.tp


def _residual_bytes(x: Layout) -> FloatArray:
    """Residual stream of one layer and micro-batch: 4 t h, over tp only where sp is on."""
    shares = np.where(x.is_sp, x.tp, 1.0)
    return 2.0 * _ACTIVATION_BYTES * x.micro_tokens * x.setting.hidden / shares


def _live_layers(x: Layout) -> FloatArray:
    """Layers of one micro-batch whose activations are held at the peak of the first stage.

    Without recomputation 1F1B holds min(m, pp) micro-batches, interleaved (1 + (pp - 1) / (pp c))
    times as much (arXiv 2104.04473, section 2.2). With it, what is being recomputed: a layer or a
    chunk.
    """
    recomputation = x.setting.recomputation
    if recomputation == "layer":
        return np.ones(len(x))
    if recomputation == "chunk":
        return x.chunk_layers
    in_flight = np.minimum(x.n_micro, x.pp)
    surplus = np.where(x.chunks > 1.0, 1.0 + (x.pp - 1.0) / (x.pp * x.chunks), 1.0)
    return in_flight * surplus * x.stage_layers


def activations(x: Layout) -> FloatArray:
    """Activations that tensor ranks share, at the peak of the first stage."""
    return _live_layers(x) * _sharded_bytes(x)


def residuals(x: Layout) -> FloatArray:
    """Residual stream at the peak of the first stage."""
    return _live_layers(x) * _residual_bytes(x)


def checkpoints(x: Layout) -> FloatArray:
    """What recomputation starts from: an input and an output per layer or chunk in flight.

    All but the one that is being recomputed, whose input `residuals` counts.
    """
    s = x.setting
    if s.recomputation == "none":
        return np.zeros(len(x))
    per_micro = x.stage_layers if s.recomputation == "layer" else x.chunks
    return (np.minimum(x.n_micro, x.pp) * per_micro - 1.0) * _residual_bytes(x)


def logits(x: Layout) -> FloatArray:
    """Logits of one micro-batch on the last stage: 10 t V / tp."""
    return _LOGIT_BYTES * x.micro_tokens * x.setting.vocabulary / x.tp


def overhead(x: Layout) -> FloatArray:
    """What a framework takes whatever the configuration: 1 GB."""
    return np.full(len(x), GB)


#: Terms that are always held; then those of the first stage's peak, then those of the last's. The
#: heavier of the two peaks counts. Shard sizes are arithmetic, hence tight; activations are what a
#: framework happens to keep.
MEMORY_TERMS: tuple[Term, ...] = (
    Term("weights", weights, 1.0, 0.05, "weights over what the shard sizes say"),
    Term("gradients", gradients, 1.0, 0.15, "gradients over what the shard sizes say"),
    Term("optimizer_states", optimizer_states, 1.0, 0.15, "states over what the shard sizes say"),
    Term("shard_copies", shard_copies, 0.5, 1.0, "copies of a ZeRO shard that are kept"),
    Term("gathered_weights", gathered_weights, 1.0, 0.5, "weights gathered ahead"),
    Term("bucket_buffers", bucket_buffers, 1.0, 0.7, "buckets in flight"),
    Term("checkpoints", checkpoints, 1.0, 0.4, "inputs kept for recomputation"),
    Term("overhead", overhead, 1.0, 0.7, "fixed memory in GB"),
    Term("activations", activations, 1.0, 0.3, "activations kept over those needed"),
    Term("residuals", residuals, 1.0, 0.3, "residual stream kept over that needed"),
    Term("logits", logits, 1.0, 0.4, "logits kept over those needed"),
)
_N_COMMON = 8


def memory_features(x: Layout) -> FloatArray:
    """All terms in GB as specifications have them, (n, k); columns as in `MEMORY_TERMS`."""
    return np.stack([term.of(x) for term in MEMORY_TERMS], axis=1) / GB


def active_features(
    features: FloatArray, coefficients: FloatArray, first_to_last: FloatArray
) -> FloatArray:
    """Features (n, k) with the lighter of the two peaks set to zero, so that sums are peaks.

    Args:
        features: Terms (n, k) in GB.
        coefficients: Coefficients (k,).
        first_to_last: Share (n,) of the first stage's activations that the last stage holds
            together with its logits; 0 with recomputation.
    """
    first = features[:, _N_COMMON:-1] @ coefficients[_N_COMMON:-1]
    last = first_to_last * first + features[:, -1] * coefficients[-1]
    active = features.copy()
    is_last = last > first
    active[:, _N_COMMON:-1] *= np.where(is_last, first_to_last, 1.0)[:, None]
    active[:, -1] *= is_last
    return active


def peak_bytes(x: Layout, coefficients: FloatArray) -> FloatArray:
    """Peak memory (n,) in bytes: what is always held, and the heavier of the two stages' peaks."""
    parts = [c * t.of(x) for c, t in zip(coefficients, MEMORY_TERMS, strict=True)]
    first = sum(parts[_N_COMMON:-1], np.zeros(len(x)))
    common = sum(parts[:_N_COMMON], np.zeros(len(x)))
    peak: FloatArray = common + np.maximum(first, last_stage_share(x) * first + parts[-1])
    return peak


def last_stage_share(x: Layout) -> FloatArray:
    """Share of the first stage's activations that the last stage holds beside its logits.

    Its micro-batches leave at once: one in flight of the first stage's min(m, pp). With
    recomputation the logits are gone before activations are made again.
    """
    if x.setting.recomputation != "none":
        return np.zeros(len(x))
    return x.stage_layers / _live_layers(x)
