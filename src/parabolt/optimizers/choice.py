"""The choice of a candidate, made so that rounding has no part in it.

Linear algebra rounds differently on different processors. Where two candidates are as good, such as
two that differ in a knob without effect, that would decide between them, and a seed would not fix a
run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from parabolt.outcome import FloatArray

#: Values closer than this share of the largest are equal. Between processors, values of fitted
#: models differ by 1e-9 of themselves at most, mostly by 1e-12.
TIE = 1e-7


def first_best(values: FloatArray, *, unit: float = 0.0) -> int:
    """Index of the largest of values (n,); of several as large the first.

    Args:
        values: What is maximised, -inf where it is excluded.
        unit: Least magnitude that `TIE` is a share of: 1 for logarithms, whose zero means nothing.
    """
    largest = values.max()
    if not np.isfinite(largest):
        return int(np.argmax(values))
    return int(np.argmax(values >= largest - TIE * max(abs(largest), unit)))
