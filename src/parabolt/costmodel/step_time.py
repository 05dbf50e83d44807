"""Step time: the sum of its terms, each with its prior coefficient."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parabolt.costmodel.terms import communication, compute
from parabolt.costmodel.terms.term import Term

if TYPE_CHECKING:
    from parabolt.costmodel.layout import Layout
    from parabolt.outcome import FloatArray

#: What would have to be faster, beside compute.
_BUBBLE, _TENSOR, _CONTEXT = "pipeline bubble", "tensor parallelism", "context parallelism"
_MESSAGES, _DATA = "pipeline messages", "data parallelism"
#: All terms of the step time. Coefficients of bandwidth terms are 1 / efficiency x exposed share;
#: large GEMMs reach about two thirds of peak and NCCL about 70 % of a link's rate; hidden
#: collectives start at half exposed. Waiting and start-up are known to an order of magnitude.
TIME_TERMS: tuple[Term, ...] = (
    Term("matmul", compute.matmul, 1.5, 0.15, "1 / efficiency of the layers' matrix products"),
    Term("tensor_shards", compute.tensor_shards, 0.1, 1.0, "loss per halving of the shards"),
    Term("attention", compute.attention, 2.0, 0.2, "1 / efficiency of attention"),
    Term("attention_scores", compute.attention_scores, 1.3, 0.5,
         "memory traffic of attention that isn't fused"),
    Term("logits", compute.logits, 1.5, 0.4, "1 / efficiency of the output projection"),
    Term("kernel_io", compute.kernel_io, 1.0, 0.7, "memory traffic over what is needed at least"),
    Term("norm_io", compute.norm_io, 1.3, 0.7, "memory traffic of norms and residuals"),
    Term("launch", compute.launch, 1.0, 1.2, "launches that are not hidden"),
    Term("bubble", compute.pipeline_bubble, 1.7, 0.3, "work per idle pipeline slot, over peak",
         _BUBBLE),
    Term("tensor_bandwidth", communication.tensor_bandwidth, 1.4, 0.5,
         "1 / efficiency of tensor-parallel collectives", _TENSOR),
    Term("tensor_sync", communication.tensor_sync, 1.0, 1.5, "start of their collectives", _TENSOR),
    Term("context_bandwidth", communication.context_bandwidth, 1.0, 0.7,
         "exposed share / efficiency of ring attention", _CONTEXT),
    Term("context_sync", communication.context_sync, 1.0, 1.5, "start of its steps", _CONTEXT),
    Term("context_contention", communication.context_contention, 0.5, 1.0,
         "share of it that ZeRO's traffic adds", _CONTEXT),
    Term("pipeline_bandwidth", communication.pipeline_bandwidth, 1.0, 0.5,
         "exposed share / efficiency of stage-to-stage messages", _MESSAGES),
    Term("pipeline_sync", communication.pipeline_sync, 1.0, 1.5, "start of these messages",
         _MESSAGES),
    Term("data_bandwidth", communication.data_bandwidth, 1.4, 0.3,
         "exposed share / efficiency of the gradient reduction, ZeRO 0", _DATA),
    Term("data_skew", communication.data_skew, 1.0, 1.0, "waiting for the slowest rank", _DATA),
    Term("zero2_bandwidth", communication.zero2_bandwidth, 0.5, 0.5,
         "exposed share / efficiency of the gradient reduction, ZeRO 2", _DATA),
    Term("zero2_span", communication.zero2_span, 0.7, 0.7,
         "overlap that is lost where buckets span layers", _DATA),
    Term("zero2_buckets", communication.zero2_buckets, 1.0, 1.0, "latency of the buckets' rings",
         _DATA),
    Term("zero3_bandwidth", communication.zero3_bandwidth, 0.5, 0.5,
         "exposed share / efficiency of gathers and reductions, ZeRO 3", _DATA),
    Term("zero3_layers", communication.zero3_layers, 1.0, 1.0, "latency of the layers' rings",
         _DATA),
    Term("optimizer", compute.optimizer, 1.3, 0.5, "1 / efficiency of the optimizer's traffic"),
    Term("fixed", compute.fixed, 1.0, 1.0, "fixed cost of an iteration"),
)  # fmt: skip


def time_features(x: Layout) -> FloatArray:
    """All terms as specifications have them, seconds, (n, k); columns as in `TIME_TERMS`."""
    return np.stack([term.of(x) for term in TIME_TERMS], axis=1)
