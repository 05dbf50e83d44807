"""A term of the cost model: what specifications say, and what is believed of its coefficient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from parabolt.costmodel.layout import Layout
    from parabolt.outcome import FloatArray


@dataclass(frozen=True)
class Term:
    """One term.

    Attributes:
        name: Name in reports and calibration files.
        of: The quantity as specifications have it, (n,) of a `Layout`; seconds or bytes.
        coefficient: What the quantity is multiplied with before any trial: a prior median.
        log_std: Standard deviation of the coefficient's logarithm before any trial.
        meaning: What the coefficient stands for, in words.
        bound: What would have to be faster for the term to fall, in words.
    """

    name: str
    of: Callable[[Layout], FloatArray]
    coefficient: float
    log_std: float
    meaning: str
    bound: str = "compute"


def log_sum(features: FloatArray, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Logarithm of the sum of terms, and its derivatives by the log-coefficients.

    Args:
        features: Terms (n, k).
        z: Log-coefficients (k,).

    Returns:
        log(features exp(z)) (n,), and (n, k) the share of each term in the sum.
    """
    parts = features * np.exp(z)
    total = parts.sum(axis=1)
    return np.log(total), parts / total[:, None]
