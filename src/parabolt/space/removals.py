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
        values, counts = _broken(levels, before, rule)
        if counts.sum():
            found.append(_removal(rule, values, counts))
        before.append(rule)
    return tuple(found)


def _removal(rule: Rule, values: Configurations, counts: Any) -> Removal:
    largest = np.argsort(-counts, kind="stable")[:_MOST]
    reasons: Counter[str] = Counter()
    for row in map(int, largest):
        reasons[rule.reason(values[row])] += int(counts[row])
    return Removal(rule.name, int(counts.sum()), tuple(reasons.most_common()))


def _broken(
    levels: Mapping[str, Sequence[int]], rules: Sequence[Rule], of: Rule
) -> tuple[Configurations, Any]:
    """Distinct values of a rule's knobs that break it, and how many configurations have them.

    These are configurations that meet all other rules given.
    """
    used = {*of.knobs}.union(*(rule.knobs for rule in rules))
    own = {k: values if k in used else values[:1] for k, values in levels.items()}
    others = prod(len(values) for k, values in levels.items() if k not in used)
    others *= constants_hold(levels, rules)
    steps = [*walk(own, rules, of)]
    at = next((i for i, step in enumerate(steps) if step.watched is not None), None)
    columns = {} if at is None else dict(steps[at].watched or {})
    constants = {k: values[0] for k, values in own.items() if k not in columns}
    counts = _through(steps, at, np.full(1, float(others)))
    if counts.sum() >= _EXACT:
        counts = _through(steps, at, np.full(1, others, dtype=object))
    else:
        counts = counts.astype(np.int64)
    values = Configurations({**constants, **columns}, n=len(counts))
    broken = ~np.broadcast_to(of.holds(values), len(counts)) & (counts > 0)
    if not columns:
        return values, counts * broken
    rows = np.stack([column[broken] for column in columns.values()], axis=1)
    distinct, of_row = np.unique(rows, axis=0, return_inverse=True)
    summed = np.zeros(len(distinct), dtype=counts.dtype)
    np.add.at(summed, of_row.ravel(), counts[broken])
    columns = dict(zip(columns, distinct.T, strict=True))
    return Configurations({**constants, **columns}, n=len(summed)), summed


def _through(steps: Sequence[LatticeStep], at: int | None, first: Any) -> Any:
    """How many configurations go through each edge of a step; in all, where it is None.

    Args:
        steps: All steps.
        at: Position of the step.
        first: Array (1,) of the configurations that an edge path stands for.
    """
    reached = first
    for step in steps[:at]:
        onward = np.zeros(step.n_after, dtype=first.dtype)
        np.add.at(onward, step.after, reached[step.before])
        reached = onward
    if at is None:
        return reached
    ways = np.ones(steps[-1].n_after, dtype=first.dtype)
    for i in range(len(steps) - 1, at, -1):
        back = np.zeros(steps[i - 1].n_after, dtype=first.dtype)
        np.add.at(back, steps[i].before, ways[steps[i].after])
        ways = back
    return reached[steps[at].before] * ways[steps[at].after]
