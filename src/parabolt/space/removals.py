"""What each rule removes from a candidate set: how many configurations, and why, in words."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.space.configurations import Configurations
from parabolt.space.lazy_lattice import constants_hold, walk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from parabolt.space.lazy_lattice import LatticeStep
    from parabolt.space.rules import Rule

#: Whole numbers below it are exact in float64.
_EXACT = 2.0**53
#: Combinations of values whose reason is put in words, most configurations first.
_MOST = 200


@dataclass(frozen=True)
class Removal:
    """What one rule removes of what the rules before it left.

    Attributes:
        rule: Name of the rule.
        n: Configurations.
        reasons: Reason in words to its configurations, most first; where there are very many
            reasons, those of the most configurations.
    """

    rule: str
    n: int
    reasons: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        first, n = self.reasons[0]
        likewise = f" ({self.n:,} for such reasons)" if self.n > n else ""
        return f"{first}: {n:,} configuration{'s' * (n != 1)}{likewise}"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        reasons = [{"reason": reason, "n": n} for reason, n in self.reasons]
        return {"rule": self.rule, "n": self.n, "reasons": reasons}


def removals(levels: Mapping[str, Sequence[int]], rules: Sequence[Rule]) -> tuple[Removal, ...]:
    """What each rule removes, in order; a rule that removes nothing is left out.

    What is removed from is all that the definitions allow: combinations of the listed values that
    use every GPU, each once. So the numbers and the lattice's size add up to that of the
    definitions' lattice.

    Args:
        levels: Values of each knob, ascending.
        rules: Rules; one that several break counts for the first of them.
    """
    before = [rule for rule in rules if rule.is_definition]
    found = []
    for rule in (rule for rule in rules if not rule.is_definition):
        values, counts = _tally(levels, before, rule)
        broken = np.flatnonzero(~np.broadcast_to(rule.holds(values), len(counts)) & (counts > 0))
        if len(broken):
            found.append(_removal(rule, values, broken, counts))
        before.append(rule)
    return tuple(found)


def _removal(rule: Rule, values: Configurations, broken: Any, counts: Any) -> Removal:
    largest = broken[np.argsort(-counts[broken], kind="stable")][:_MOST]
    reasons: Counter[str] = Counter()
    for row in map(int, largest):
        reasons[rule.reason(values[row])] += int(counts[row])
    return Removal(rule.name, int(counts[broken].sum()), tuple(reasons.most_common()))


def _reached(steps: Sequence[LatticeStep], counts: Any) -> Any:
    """How many combinations of values lead to each state after the last step."""
    for step in steps:
        reached = np.zeros(step.n_after, dtype=counts.dtype)
        np.add.at(reached, step.after, counts[step.before])
        counts = reached
    return counts


def _tally(
    levels: Mapping[str, Sequence[int]], rules: Sequence[Rule], of: Rule
) -> tuple[Configurations, Any]:
    """Values of a rule's knobs, and how many configurations that meet other rules have them."""
    used = {*of.knobs}.union(*(rule.knobs for rule in rules))
    own = {k: values if k in used else values[:1] for k, values in levels.items()}
    others = prod(len(values) for k, values in levels.items() if k not in used)
    others *= constants_hold(levels, rules)
    steps = [*walk(own, rules, of.knobs)]
    counts = _reached(steps, np.full(1, float(others)))
    if counts.sum() >= _EXACT:
        counts = _reached(steps, np.full(1, others, dtype=object))
    else:
        counts = counts.astype(np.int64)
    columns = steps[-1].columns if steps else {}
    kept = {k: column for k, column in columns.items() if k in of.knobs}
    constants = {k: values[0] for k, values in own.items() if k not in kept}
    return Configurations({**constants, **kept}, n=len(counts)), counts
