"""The lattice: every configuration that the rules allow, in canonical order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parabolt.space.configurations import Configurations
from parabolt.space.knobs import KNOBS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from parabolt.outcome import IntArray
    from parabolt.space.rules import Rule


def enumerate_lattice(levels: Mapping[str, Sequence[int]], rules: Sequence[Rule]) -> Configurations:
    """Lists all valid configurations.

    The columns grow knob by knob, and a rule prunes them as soon as all its knobs are there, so the
    full product of the levels is never built. A knob with one value is no column.

    Args:
        levels: Values of each knob, ascending.
        rules: Rules that every configuration meets.

    Returns:
        The configurations, in lexicographic order.
    """
    fixed = {name: values[0] for name, values in levels.items() if len(values) == 1}
    columns: dict[str, IntArray] = {}
    n, known = 1, set(fixed)
    todo = list(rules)
    for name in (None, *(name for name in KNOBS if name not in fixed)):
        if name is not None:
            values = np.asarray(levels[name], dtype=np.int64)
            columns = {k: np.repeat(column, len(values)) for k, column in columns.items()}
            columns[name] = np.tile(values, n)
            n *= len(values)
            known.add(name)
        for rule in [rule for rule in todo if known.issuperset(rule.knobs)]:
            todo.remove(rule)
            kept = rule.holds(Configurations({**fixed, **columns}, n=n))
            kept = np.broadcast_to(kept, n)
            columns = {k: column[kept] for k, column in columns.items()}
            n = int(kept.sum())
    return Configurations({**fixed, **columns}, n=n)
