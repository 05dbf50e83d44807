"""Candidates as inputs of a residual kernel: what of a knob can matter, how far levels are apart.

What the knobs mean says that sequence parallelism is first of all on or off, that the gradient
bucket matters only where ZeRO reduces gradients bucket by bucket, and that ZeRO levels are
categories. Each input is scaled so that a distance of 1 is "quite another regime": a kernel needs
one lengthscale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from parabolt.instances.search_space import SearchSpace
    from parabolt.outcome import FloatArray, IntArray

#: Distance of one doubling of a size, and of on from off, beside a change of regime.
_DOUBLING, _FINE_DOUBLING = 0.5, 0.15
#: Knobs that have columns of their own.
_TREATED = ("dp", "tp", "pp", "cp", "sp", "bucket", "zero", "chunks", "grad_accum")


def structure_inputs(space: SearchSpace, rows: IntArray) -> FloatArray:
    """Inputs (n, 11 or more) of candidates `rows` (n,).

    Columns: dp, tp, pp, cp, chunks and accumulation by doublings; sequence parallelism on, and its
    doublings; the bucket where ZeRO shards gradients; ZeRO 2; ZeRO 3; ZeRO 1 if it is there; then
    the numbers of any other knob that is searched, a step in them being as much as a doubling.
    """
    encoding = space.instance.encoding
    s: Any = encoding.configurations(space.encoded[rows])
    coarse = [np.log2(size) for size in (s.dp, s.tp, s.pp, s.cp, s.chunks, s.grad_accum)]
    is_zero = s.zero > 1
    columns = [
        *(_DOUBLING * level for level in coarse),
        1.0 * (s.sp > 1),
        _FINE_DOUBLING * np.log2(s.sp),
        np.where(is_zero, _DOUBLING * np.log2(s.bucket), 0.0),
        1.0 * (s.zero == 2),
        1.0 * (s.zero == 3),
        *([1.0 * (s.zero == 1)] if (s.zero == 1).any() else []),
    ]
    others = [axis for axis in encoding.axes if axis.knob.name not in _TREATED]
    more = [axis.scale.points[axis.positions_of(getattr(s, axis.knob.name))] for axis in others]
    columns += [_DOUBLING * column for points in more for column in points.T]
    inputs = np.stack(columns, axis=1).astype(np.float64)
    mean_bucket = inputs[is_zero, 8].mean() if is_zero.any() else 0.0
    inputs[is_zero, 8] -= mean_bucket  # so that ZeRO on or off is no distance in bucket
    return inputs
