"""The lattice: every configuration that the rules allow, in canonical order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parabolt.space.knobs import KNOBS
from parabolt.space.rules import Sizes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from parabolt.outcome import IntArray
    from parabolt.space.rules import Rule


def enumerate_lattice(levels: Mapping[str, Sequence[int]], rules: Sequence[Rule]) -> IntArray:
    """Lists all valid configurations.

    The table grows knob by knob, and a rule prunes it as soon as all its knobs are there, so the
    full product of the levels is never built.

    Args:
        levels: Raw sizes of each of the nine knobs, ascending.
        rules: Rules that every configuration meets.

    Returns:
        Raw sizes (n, 9) int64, columns in the order of `KNOBS`, rows in lexicographic order.
    """
    table = np.zeros((1, 0), dtype=np.int64)
    names = list(KNOBS)
    for position, name in enumerate(names):
        sizes = np.asarray(levels[name], dtype=np.int64)
        old = np.repeat(table, len(sizes), axis=0)
        new = np.tile(sizes, len(table))[:, None]
        table = np.hstack([old, new])
        seen = names[: position + 1]
        columns = Sizes({known: table[:, i] for i, known in enumerate(seen)})
        for rule in rules:
            if name in rule.knobs and set(rule.knobs) <= set(seen):
                kept = rule.holds(columns)
                table = table[kept]
                columns = Sizes({known: table[:, i] for i, known in enumerate(seen)})
    return table
