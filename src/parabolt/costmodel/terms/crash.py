"""Failures that memory doesn't explain: a logistic hazard over what runs at the same time.

The measured tables hold runs that died far below the GPU's memory (deep pipelines with ring
attention, one layer per chunk, ZeRO 3 next to ring attention). What they share is many concurrent
communicators, so the features count those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from parabolt.costmodel.layout import Layout
    from parabolt.outcome import FloatArray

#: Features, in order. Sizes are log2; products stand for groups that are busy at once.
CRASH_FEATURES: tuple[str, ...] = (
    "intercept", "pp", "cp", "tp", "chunks", "single_layer_chunks", "pp_cp", "pp_chunks", "pp_tp",
    "tp_cp", "zero3", "zero2", "zero3_tp_cp", "zero3_bucket",
)  # fmt: skip
#: Prior: about one run in a hundred dies for no stated reason, and nothing makes it likelier.
PRIOR_LOG_ODDS, PRIOR_STD = -4.6, 1.0
_BUCKET_UNIT = 64e6


def crash_features(x: Layout) -> FloatArray:
    """The features of a layout, dimensionless, (n, k); columns as in `CRASH_FEATURES`."""
    pp, cp, tp, chunks = (np.log2(size) for size in (x.pp, x.cp, x.tp, x.chunks))
    zero2, zero3 = x.is_z2.astype(np.float64), x.is_z3.astype(np.float64)
    single = (x.chunk_layers <= 1.0).astype(np.float64)
    bucket = np.log2(x.bucket / _BUCKET_UNIT)
    columns = (
        np.ones(len(x)), pp, cp, tp, chunks, single, pp * cp, pp * chunks, pp * tp, tp * cp,
        zero3, zero2, zero3 * tp * cp, zero3 * bucket,
    )  # fmt: skip
    return np.stack(columns, axis=1)
