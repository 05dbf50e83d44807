"""Configurations of several instances as points of one space, so that they can be compared.

Instances differ in GPUs, batch and searched knobs, so what is compared is where a configuration
puts its work (`costmodel.layout`). The data-parallel size is no column: it is what the other groups
leave of the GPUs, and takes any number of them. The size of a micro-batch stands for accumulation.

Symbols: N candidates of the asked instance, n trials of another, d columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from parabolt.costmodel.layout import Layout
from parabolt.costmodel.resolved_instance import ResolvedInstance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from parabolt.costmodel.calibration.evidence import Evidence
    from parabolt.instances.search_space import SearchSpace
    from parabolt.outcome import FloatArray, IntArray

#: Cells of a matrix of distances that are computed at a time.
_BLOCK_CELLS = 1 << 20


@dataclass(frozen=True, eq=False)
class SharedInputs:
    """Points in the unit cube of all that candidates and past trials take.

    Attributes:
        candidates: Of the asked instance (N, d).
        past: Of each item of the history (n, d).
    """

    candidates: FloatArray
    past: tuple[FloatArray, ...]

    @classmethod
    def of(cls, space: SearchSpace, past: Sequence[Evidence]) -> SharedInputs:
        """The points of candidates and past trials; columns that never vary are left out.

        Raises:
            InvalidConfigurationError: If the instance searches a knob that no layout describes.
        """
        sizes = space.instance.encoding.configurations(space.encoded)
        layouts = [
            Layout.of(ResolvedInstance.of(space.instance), sizes),
            *(item.layout for item in past),
        ]
        parts = [_columns(layout) for layout in layouts]
        lower = np.min([part.min(axis=0) for part in parts if len(part)], axis=0)
        upper = np.max([part.max(axis=0) for part in parts if len(part)], axis=0)
        varies = upper > lower
        unit = [(part - lower)[:, varies] / (upper - lower)[varies] for part in parts]
        return cls(unit[0], tuple(unit[1:]))


def _columns(layout: Layout) -> FloatArray:
    """Doublings of sizes, sequence parallelism on or off, and the stage of ZeRO: (n, 8)."""
    sizes = (layout.tp, layout.pp, layout.cp, layout.chunks, layout.micro_tokens, layout.bucket)
    stage = np.where(layout.is_z0 & ~layout.is_optimizer_whole, 1.0, 0.0)
    stage += 2.0 * layout.is_z2 + 3.0 * layout.is_z3
    return np.stack([*map(np.log2, sizes), 1.0 * layout.is_sp, stage], axis=1)


def nearest(points: FloatArray, among: FloatArray) -> IntArray:
    """For each of points (n, d) the index (n,) of the nearest among (m, d); the first of several.

    Differences are summed one column at a time, so that no rounding decides between equals.
    """
    n_blocks = max(1, len(points) * len(among) // _BLOCK_CELLS)
    return np.concatenate(
        [
            sum(
                (np.subtract.outer(block[:, j], among[:, j]) ** 2 for j in range(among.shape[1])),
                np.zeros((len(block), len(among))),
            ).argmin(axis=1)
            for block in np.array_split(points, n_blocks)
        ]
    )
