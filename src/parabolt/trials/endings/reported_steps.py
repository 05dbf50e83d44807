"""Which steps came after a line: what a process went past did not end it."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from parabolt.trials.endings.streams import Line, Step


class _Series:
    """The steps of one series: their positions, their numbers, how far it had come at each."""

    def __init__(self, steps: list[Step]) -> None:
        # A bar at 0 has not moved; of other series step 0 is the first.
        start = 0 if steps[0].series.startswith("bar") else -1
        numbers = [step.number for step in steps]
        self._orders = [step.line.order for step in steps]
        largest = accumulate(reversed(numbers), _two_largest, initial=(start, start))
        self._to_come = [*largest][::-1]
        self._reached = [*accumulate(numbers, max, initial=start)]

    def n_past(self, order: int) -> int:
        """0, 1, or 2 for any more."""
        at = bisect_left(self._orders, order)
        return sum(number > self._reached[at] for number in self._to_come[at])


def _two_largest(two: tuple[int, int], number: int) -> tuple[int, int]:
    """The two largest of three numbers, the largest first; one that is there already adds none."""
    first, second = two
    if number in two:
        return two
    return (number, first) if number > first else (first, max(second, number))


class ReportedSteps:
    """The steps that the ranks of a trial reported.

    Args:
        steps: All of them, in order.
    """

    def __init__(self, steps: Iterable[Step]) -> None:
        self._steps: dict[tuple[int, int | None], list[Step]] = {}
        for step in steps:
            self._steps.setdefault((step.line.log, step.line.rank), []).append(step)
        self._series: dict[tuple[int, int | None, bool], list[_Series]] = {}

    def goes_past(self, line: Line, *, by_anyone: bool = False) -> bool:
        """Whether the process of a line reported a further step after it.

        A progress bar that is drawn once more as a program ends reports none.

        Args:
            line: The line.
            by_anyone: Whether a step of an unknown rank counts, too: libraries label their
                warnings with a rank where the program that prints the steps does not.
        """
        return self.n_past(line, by_anyone=by_anyone) > 0

    def n_past(self, line: Line, *, by_anyone: bool = False) -> int:
        """How many further steps the process of a line reported, 2 for any more."""
        key = (line.log, line.rank, by_anyone)
        if key not in self._series:
            self._series[key] = self._series_of(*key)
        return max((series.n_past(line.order) for series in self._series[key]), default=0)

    def _series_of(self, log: int, rank: int | None, by_anyone: bool) -> list[_Series]:  # noqa: FBT001 - a key's part
        by_name: dict[str, list[Step]] = {}
        for (its_log, its_rank), steps in self._steps.items():
            is_same = its_rank == rank or (by_anyone and None in (rank, its_rank))
            if its_log == log and is_same:
                for step in steps:
                    by_name.setdefault(step.series, []).append(step)
        return [_Series(sorted(s, key=lambda step: step.line.order)) for s in by_name.values()]
