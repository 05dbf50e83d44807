"""The lattice without listing it: how many configurations it has, and any of them by its number.

Knobs are taken in canonical order. After each, configurations that later rules cannot tell apart
are one state, so there are few states even where there are billions of configurations. Counts are
exact: Python's own whole numbers where int64 could overflow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.space.configurations import Configurations
from parabolt.space.knobs import KNOBS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from parabolt.outcome import IntArray
    from parabolt.space.rules import Rule

#: Counts beyond this are Python's whole numbers.
_LARGEST = 2**62


@dataclass(frozen=True, eq=False)
class LatticeStep:
    """What one knob adds: e edges from the states before it to those after it.

    Attributes:
        knob: Name of the knob.
        before: State (e,) that an edge comes from, ascending.
        values: Value (e,) of the knob, ascending within a state.
        after: State (e,) that an edge leads to.
        n_after: How many states there are after the knob.
        watched: Where the watched rule's last knob comes: values (e,) of its knobs.
    """

    knob: str
    before: IntArray
    values: IntArray
    after: IntArray
    n_after: int
    watched: Mapping[str, IntArray] | None = None


def walk(
    levels: Mapping[str, Sequence[int]], rules: Sequence[Rule], watched: Rule | None = None
) -> Iterator[LatticeStep]:
    """The steps from the first knob with several values to the last.

    Args:
        levels: Values of each knob, ascending.
        rules: Rules that every configuration meets.
        watched: A rule that is not applied, and whose knobs are told apart until all are there.
    """
    fixed = {name: values[0] for name, values in levels.items() if len(values) == 1}
    searched = [name for name in KNOBS if len(levels.get(name, ())) > 1]
    columns: dict[str, IntArray] = {}
    n, known, todo = 1, set(fixed), list(rules)
    for name in searched:
        values = np.asarray(levels[name], dtype=np.int64)
        before = np.repeat(np.arange(n), len(values))
        columns = {key: column[before] for key, column in columns.items()}
        columns[name] = np.tile(values, n)
        known.add(name)
        holds = np.ones(len(before), dtype=bool)
        for rule in [rule for rule in todo if known.issuperset(rule.knobs)]:
            todo.remove(rule)
            holds &= rule.holds(Configurations({**fixed, **columns}, n=len(before)))
        columns = {key: column[holds] for key, column in columns.items()}
        before, own = before[holds], columns[name]
        told_apart = {*watched.knobs} if watched else set()
        found = None
        if name in told_apart and known >= told_apart:
            found = {key: column for key, column in columns.items() if key in told_apart}
            watched, told_apart = None, set()
        seen = told_apart.union(*(rule.knobs for rule in todo))
        columns = {key: column for key, column in columns.items() if key in seen}
        first, after = _states(columns, levels, len(before))
        columns = {key: column[first] for key, column in columns.items()}
        n = len(first)
        yield LatticeStep(name, before, own, after, n, found)


def _states(
    columns: Mapping[str, IntArray], levels: Mapping[str, Sequence[int]], n: int
) -> tuple[IntArray, IntArray]:
    """The first row of each distinct one, and the number of each row's distinct one."""
    codes, size = np.zeros(n, dtype=np.int64), 1
    for name, column in columns.items():
        values = np.asarray(levels[name])
        if size > _LARGEST // len(values):
            codes = np.unique(codes, return_inverse=True)[1]
            size = n
        codes = codes * len(values) + np.searchsorted(values, column)
        size *= len(values)
    _, first, after = np.unique(codes, return_index=True, return_inverse=True)
    return first, after


def constants_hold(levels: Mapping[str, Sequence[int]], rules: Sequence[Rule]) -> bool:
    """Whether the knobs of one value meet the rules that look at no other knob."""
    fixed = {name: values[0] for name, values in levels.items() if len(values) == 1}
    constants = Configurations(fixed, n=1)
    of_fixed = [rule for rule in rules if fixed.keys() >= {*rule.knobs}]
    return all(bool(np.all(rule.holds(constants))) for rule in of_fixed)


class LazyLattice:
    """All valid configurations, in lexicographic order, numbered from 0; none of them is held.

    Args:
        levels: Values of each knob, ascending.
        rules: Rules that every configuration meets.

    Attributes:
        n: How many configurations there are.
    """

    def __init__(self, levels: Mapping[str, Sequence[int]], rules: Sequence[Rule]) -> None:
        self._fixed = {name: values[0] for name, values in levels.items() if len(values) == 1}
        is_possible = constants_hold(levels, rules)
        self._steps = [*walk(levels, rules)]
        n_before = [1, *(step.n_after for step in self._steps)]
        #: Where in its step the edges of each state begin.
        self._starts = [
            np.searchsorted(step.before, np.arange(n + 1))
            for step, n in zip(self._steps, n_before, strict=False)
        ]
        one = np.full(1, float(is_possible))
        if self._count(one) < _LARGEST // 2:
            self.n = int(self._count(one.astype(np.int64)))
        else:
            self.n = self._count(one.astype(np.int64).astype(object))

    def _count(self, ways: Any) -> Any:
        """How many configurations there are, and for each step the sums over the edges before one.

        Args:
            ways: Array (1,) of 1 after the last knob, or 0; its type is that of the counts, none of
                which is more than the result.
        """
        sums: list[Any] = []
        for step, starts in zip(reversed(self._steps), reversed(self._starts), strict=True):
            edges = ways[step.after] if len(step.after) else ways[:0]
            total = np.concatenate([np.zeros(1, dtype=ways.dtype), np.cumsum(edges)])
            ways = total[starts[1:]] - total[starts[:-1]]
            sums.insert(0, total)
        self._ways = sums
        return ways[0]

    def at(self, numbers: npt.ArrayLike) -> Configurations:
        """The configurations of numbers (m,), each from 0 to n - 1.

        Raises:
            IndexError: If a number is outside.
        """
        rest: Any = np.asarray(numbers, dtype=self._ways[0].dtype if self._ways else np.int64)
        if len(rest) and not (min(rest) >= 0 and max(rest) < self.n):
            raise IndexError(f"expected numbers from 0 to {self.n - 1}")
        state = np.zeros(len(rest), dtype=np.int64)
        columns = {}
        for step, total, starts in zip(self._steps, self._ways, self._starts, strict=True):
            target = total[starts[state]] + rest
            edge = np.searchsorted(total, target, side="right") - 1
            rest = target - total[edge]
            columns[step.knob] = step.values[edge]
            state = step.after[edge]
        return Configurations({**self._fixed, **columns}, n=len(rest))

    def sample(self, n: int, rng: np.random.Generator) -> Configurations:
        """Distinct configurations, each as likely as any other, in order; all where n is not less.

        Args:
            n: How many.
            rng: Source of random numbers.
        """
        if n >= self.n:
            return self.at(np.arange(self.n))
        if n > self.n // 4:  # most draws one by one would be repeats
            return self.at(np.sort(rng.permutation(self.n)[:n]))
        drawn: Any = np.zeros(0, dtype=np.int64 if self.n < _LARGEST else object)
        while len(drawn) < n:
            more: Any
            if self.n < _LARGEST:
                more = rng.integers(self.n, size=n - len(drawn))
            else:
                numbers = [int.from_bytes(rng.bytes(32)) % self.n for _ in range(n - len(drawn))]
                more = np.array(numbers, dtype=object)
            drawn = np.unique(np.concatenate([drawn, more]))
        return self.at(drawn)
