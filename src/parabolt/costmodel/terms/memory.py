"""Peak memory of a GPU on the heaviest stage: one function per term.

Every function gives bytes (n,) float64. Reports are in GiB, as PyTorch's are. Symbols: P parameters
of a GPU on the heaviest stage, n = dp cp ranks that share them, t tokens per context rank and
micro-batch, h hidden size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parabolt.costmodel.terms.term import Term
from parabolt.outcome import GIB

if TYPE_CHECKING:
    from parabolt.costmodel.layout import Layout
    from parabolt.outcome import FloatArray

_ACTIVATION_BYTES = 2
#: Bytes per logit of the loss: bf16, its fp32 copy, and the gradient in fp32.
_LOGIT_BYTES = 2 + 4 + 4


def weights(x: Layout) -> FloatArray:
    """Weights that are computed with: P, or P / n under ZeRO 3 (arXiv 1910.02054, 5.3)."""
    return x.instance.weight_bytes * x.stage_parameters / np.where(x.is_z3, x.n_shards, 1.0)


def gradients(x: Layout) -> FloatArray:
    """Gradient buffer: P, or P / n under ZeRO 2 and 3 (arXiv 1910.02054, section 5.2)."""
    return x.instance.gradient_bytes * x.stage_parameters / np.where(x.is_z0, 1.0, x.n_shards)


def optimizer_states(x: Layout) -> FloatArray:
    """Optimizer states and master weights: P / n (arXiv 1910.02054, section 5.1)."""
    shards = np.where(x.is_optimizer_whole, 1.0, x.n_shards)
    return x.instance.optimizer_bytes * x.stage_parameters / shards


def shard_copies(x: Layout) -> FloatArray:
    """ZeRO 2 and 3: working copies of a rank's shard (fp32 weights and gradients), 8 P / n."""
    return np.where(x.is_z0, 0.0, 8.0 * x.stage_parameters / x.n_shards)


def gathered_weights(x: Layout) -> FloatArray:
    """ZeRO 3: two layers and the embedding tables gathered, as weights and as gradients."""
    s = x.instance
    gathered = 2.0 * s.layer_parameters + s.n_embeddings * s.embedding_parameters
    return np.where(x.is_z3, 2.0 * s.weight_bytes * gathered / x.tp, 0.0)


def bucket_buffers(x: Layout) -> FloatArray:
    """ZeRO 2 and 3: a bucket in flight; one that an embedding table fits into holds it as well."""
    s = x.instance
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
    s = x.instance
    widths = 2.0 * s.hidden + 3.0 * s.query + 3.0 * s.kv + s.n_ffn_inputs * s.ffn
    if s.recomputation == "none":
        widths += s.ffn
    scores = 0.0 if s.is_attention_fused else 5.0 * s.n_heads * s.sequence
    return x.micro_tokens * (_ACTIVATION_BYTES * widths + scores) / x.tp


def _residual_bytes(x: Layout) -> FloatArray:
    """Residual stream of one layer and micro-batch: 4 t h, over tp only where sp is on."""
    shares = np.where(x.is_sp, x.tp, 1.0)
    return 2.0 * _ACTIVATION_BYTES * x.micro_tokens * x.instance.hidden / shares


def _in_flight(x: Layout) -> tuple[FloatArray, FloatArray]:
    """Chunk-sized forward passes that are held at once, by the first stage and by the last.

    1F1B holds min(m, pp) micro-batches on the first stage and one on the last; interleaved, pp - 1
    passes more than pp chunks on the first (arXiv 2104.04473, section 2.2), and all of the earlier
    chunks' passes on the last.
    """
    full = np.minimum(x.n_micro, x.pp)
    surplus = np.where(x.chunks > 1.0, full - 1.0, 0.0)
    first = np.minimum(full * x.chunks + surplus, x.n_micro * x.chunks)
    return first, full * (x.chunks - 1.0) + 1.0


def _live_layers(x: Layout) -> FloatArray:
    """Layers of one micro-batch whose activations are held at the peak of the first stage.

    All that are in flight; with recomputation only the layer or the chunk that is being recomputed.
    """
    recomputation = x.instance.recomputation
    if recomputation == "layer":
        return np.ones(len(x))
    if recomputation == "chunk":
        return x.chunk_layers
    return _in_flight(x)[0] * x.chunk_layers


def activations(x: Layout) -> FloatArray:
    """Activations that tensor ranks share, at the peak of the first stage."""
    return _live_layers(x) * _sharded_bytes(x)


def residuals(x: Layout) -> FloatArray:
    """Residual stream at the peak of the first stage."""
    return _live_layers(x) * _residual_bytes(x)


def _kept_per_pass(x: Layout) -> FloatArray:
    """Inputs that recomputation keeps of one pass through a chunk."""
    is_layer = x.instance.recomputation == "layer"
    return x.chunk_layers if is_layer else np.ones(len(x))


def checkpoints(x: Layout) -> FloatArray:
    """What recomputation starts from: an input and an output per layer or chunk in flight.

    All but the one that is being recomputed, whose input `residuals` counts.
    """
    if x.instance.recomputation == "none":
        return np.zeros(len(x))
    return (_in_flight(x)[0] * _kept_per_pass(x) - 1.0) * _residual_bytes(x)


def logits(x: Layout) -> FloatArray:
    """Logits of one micro-batch on the last stage: 10 t V / tp."""
    return _LOGIT_BYTES * x.micro_tokens * x.instance.vocabulary / x.tp


def overhead(x: Layout) -> FloatArray:
    """What a framework takes whatever the configuration: 1 GiB."""
    return np.full(len(x), GIB)


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
    Term("overhead", overhead, 1.0, 0.7, "fixed memory in GiB"),
    Term("checkpoints", checkpoints, 1.0, 0.4, "inputs kept for recomputation"),
    Term("activations", activations, 1.0, 0.3, "activations kept over those needed"),
    Term("residuals", residuals, 1.0, 0.3, "residual stream kept over that needed"),
    Term("logits", logits, 1.0, 0.4, "logits kept over those needed"),
)
_N_COMMON = 7


def memory_features(x: Layout) -> FloatArray:
    """All terms in GiB as specifications have them, (n, k); columns as in `MEMORY_TERMS`."""
    return np.stack([term.of(x) for term in MEMORY_TERMS], axis=1) / GIB


def active_features(
    features: FloatArray, coefficients: FloatArray, last_shares: FloatArray
) -> FloatArray:
    """Features (n, k) with the lighter of the two peaks set to zero, so that sums are peaks.

    Args:
        features: Terms (n, k) in GiB.
        coefficients: Coefficients (k,).
        last_shares: See `last_stage_shares`.
    """
    of_last = features[:, _N_COMMON:-1] * last_shares
    first = features[:, _N_COMMON:-1] @ coefficients[_N_COMMON:-1]
    last = of_last @ coefficients[_N_COMMON:-1] + features[:, -1] * coefficients[-1]
    is_last = last > first
    active = features.copy()
    active[is_last, _N_COMMON:-1] = of_last[is_last]
    active[~is_last, -1] = 0.0
    return active


def peak_bytes(x: Layout, coefficients: FloatArray) -> FloatArray:
    """Peak memory (n,) in bytes: what is always held, and the heavier of the two stages' peaks."""
    parts = [c * t.of(x) for c, t in zip(coefficients, MEMORY_TERMS, strict=True)]
    common = sum(parts[:_N_COMMON], np.zeros(len(x)))
    first = sum(parts[_N_COMMON:-1], np.zeros(len(x)))
    shares = last_stage_shares(x)
    last = parts[-1] + sum(
        (share * part for share, part in zip(shares.T, parts[_N_COMMON:-1], strict=True)),
        np.zeros(len(x)),
    )
    peak: FloatArray = common + np.maximum(first, last)
    return peak


def last_stage_shares(x: Layout) -> FloatArray:
    """Shares (n, 3) of the first stage's checkpoints, activations and residuals on the last stage.

    These are there beside the logits. With recomputation the logits are gone before activations are
    made again.
    """
    first, last = _in_flight(x)
    if x.instance.recomputation == "none":
        share = last / first
        return np.stack([np.zeros(len(x)), share, share], axis=1)
    kept = _kept_per_pass(x)
    share = last * kept / np.maximum(first * kept - 1.0, 1.0)
    return np.stack([share, np.zeros(len(x)), np.zeros(len(x))], axis=1)
