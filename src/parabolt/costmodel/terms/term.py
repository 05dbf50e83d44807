"""A term of the cost model: a physical quantity times a coefficient that trials may correct."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from parabolt.costmodel.layout import Layout
    from parabolt.outcome import FloatArray


@dataclass(frozen=True)
class Term:
    """One term.

    Attributes:
        name: Name in reports and calibration files.
        of: The quantity as specifications have it, (n,) of a `Layout`; seconds or GB.
        coefficient: What the quantity is multiplied with before any trial: a prior median.
        log_std: Standard deviation of the coefficient's logarithm before any trial.
        meaning: What the coefficient stands for, in words.
    """

    name: str
    of: Callable[[Layout], FloatArray]
    coefficient: float
    log_std: float
    meaning: str
