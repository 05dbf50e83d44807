"""The candidates as choices one after another, for libraries whose spaces may depend on choices.

The numbers of the encoding are chosen in its order. For each, the levels on offer are those of the
candidates that agree with what was chosen before, so every walk ends at a candidate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from parabolt.errors import InvalidConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from parabolt.instances.search_space import SearchSpace
    from parabolt.outcome import IntArray

Level = int | float


@dataclass(frozen=True)
class LevelChoice:
    """One choice of a walk.

    Attributes:
        name: Name of the number, such as `dp_log2`; where the levels on offer are no range of whole
            numbers, they are part of the name (`micro_batch_log2 of 0, 3`), since libraries want
            the same choices under the same name.
        levels: The levels on offer, ascending; ints where they are whole.
        is_range: Whether they are all whole numbers from the first to the last.
    """

    name: str
    levels: tuple[Level, ...]
    is_range: bool


class CandidateWalk:
    """Walks over the candidates of a problem.

    Args:
        space: Instance and candidates.
    """

    def __init__(self, space: SearchSpace) -> None:
        self._encoded = space.encoded
        self._names = list(space.instance.encoding.ranges)

    def go(self, choose: Callable[[LevelChoice], Level]) -> int:
        """Row of the candidate that `choose` leads to; it gives one of the levels on offer."""
        rows = np.arange(len(self._encoded))
        for number in range(len(self._names)):
            rows = self._after(rows, number, choose(self._choice(rows, number)))
        return int(rows[0])

    def levels_of(self, row: int) -> dict[LevelChoice, Level]:
        """The walk to a candidate by row number: each choice, and the level that it takes."""
        levels: dict[LevelChoice, Level] = {}
        numbers = iter(self._encoded[row].tolist())

        def choose(choice: LevelChoice) -> Level:
            number = next(numbers)
            levels[choice] = int(number) if isinstance(choice.levels[0], int) else number
            return levels[choice]

        self.go(choose)
        return levels

    def row_of(self, given: Mapping[str, Level]) -> int:
        """Row of the candidate that named levels lead to.

        Raises:
            InvalidConfigurationError: If they are no candidate's.
        """

        def choose(choice: LevelChoice) -> Level:
            level = given.get(choice.name)
            if level is None or level not in choice.levels:
                raise InvalidConfigurationError(
                    f"{choice.name}: expected one of {', '.join(map(str, choice.levels))}, as the "
                    f"candidates with the choices before it have, got {level}"
                )
            return level

        return self.go(choose)

    def choices(self) -> Iterator[LevelChoice]:
        """Every choice that a walk can meet."""
        yield from self._from(np.arange(len(self._encoded)), 0)

    def _from(self, rows: IntArray, number: int) -> Iterator[LevelChoice]:
        if number == len(self._names):
            return
        choice = self._choice(rows, number)
        yield choice
        for level in choice.levels:
            yield from self._from(self._after(rows, number, level), number + 1)

    def _choice(self, rows: IntArray, number: int) -> LevelChoice:
        found = np.unique(self._encoded[rows, number])
        is_whole = bool((found == np.round(found)).all())
        levels = tuple(int(x) if is_whole else x for x in found.tolist())
        is_range = is_whole and levels == tuple(range(int(levels[0]), int(levels[-1]) + 1))
        name = self._names[number]
        if not is_range:
            name = f"{name} of {', '.join(map(str, levels))}"
        return LevelChoice(name, levels, is_range)

    def _after(self, rows: IntArray, number: int, level: Level) -> IntArray:
        after: IntArray = rows[self._encoded[rows, number] == level]
        return after
