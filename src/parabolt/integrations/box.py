"""The box around a problem's candidates, for libraries that search boxes and not lists.

Few points of the box are candidates (3 % on pco32). A point that is none stands for its nearest
candidate: by Euclidean distance in the unit cube of the encoding's bounds, as in the published
runs, and the first of several. `Placed` says so, and every integration passes that on to where its
library keeps notes about a trial.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.errors import InvalidConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from parabolt.instances.search_space import SearchSpace
    from parabolt.outcome import FloatArray
    from parabolt.space.configuration import Configuration


@dataclass(frozen=True)
class Placed:
    """The candidate that a point of the box stands for.

    Attributes:
        configuration: The candidate.
        row: Its row number.
        is_candidate: Whether the point was that candidate, rather than near it.
    """

    configuration: Configuration
    row: int
    is_candidate: bool


class CandidateBox:
    """Names, sizes and levels of the searched knobs, and the way from a point to a candidate.

    Args:
        space: Instance and candidates.

    Attributes:
        sizes: Knob name to the values or words that are searched, ascending.
        levels: Name to smallest and largest number of the encoding: `dp_log2` and so on, and
            `zero_ordinal` for the ordinal of the ZeRO stage. Ints where there are only whole ones.
    """

    def __init__(self, space: SearchSpace) -> None:
        encoding = space.instance.encoding
        self.space = space
        self._encoding = encoding
        self._axes = {axis.knob.name: axis for axis in encoding.axes}
        self.sizes: dict[str, list[int | str]] = {
            name: [axis.knob.plain(value) for value in axis.values]
            for name, axis in self._axes.items()
        }
        self.levels = encoding.ranges

    def encode(self, sizes: Mapping[str, Any]) -> FloatArray:
        """Raw sizes, one for each searched knob, as an encoded point (d,).

        Raises:
            InvalidConfigurationError: If knobs are missing or unknown, or a size is off its scale.
        """
        _expect_names(sizes, self.sizes)
        points = []
        for name, axis in self._axes.items():
            points.append(axis.scale.encode(axis.knob.check(_size(name, sizes[name]))))
        return np.concatenate(points) if points else np.zeros(0)

    def sizes_of(self, row: int) -> dict[str, int | str]:
        """Values or words of a candidate by row number, one for each searched knob."""
        configuration = self.space.candidates[row]
        return {k: axis.knob.plain(getattr(configuration, k)) for k, axis in self._axes.items()}

    def levels_of(self, row: int) -> dict[str, int | float]:
        """Numbers of a candidate's encoded row, by name."""
        return {
            name: type(low)(number)
            for (name, (low, _)), number in zip(
                self.levels.items(), self.space.encoded[row].tolist(), strict=True
            )
        }

    def distances(self, point: FloatArray) -> FloatArray:
        """Squared distances (n,) of an encoded point (d,) to all candidates, in the unit cube."""
        squares: FloatArray = ((self.space.unit_cube - self._encoding.to_unit(point)) ** 2).sum(
            axis=1
        )
        return squares

    def place(self, point: FloatArray) -> Placed:
        """The candidate that an encoded point (d,) stands for."""
        row = int(np.argmin(self.distances(point)))
        is_candidate = bool(np.array_equal(self.space.encoded[row], point))
        return Placed(self.space.candidates[row], row, is_candidate)

    def place_sizes(self, sizes: Mapping[str, Any]) -> Placed:
        """The candidate that raw sizes stand for; see `encode` for the errors."""
        return self.place(self.encode(sizes))

    def place_levels(self, levels: Mapping[str, Any]) -> Placed:
        """The candidate that named levels stand for.

        Raises:
            InvalidConfigurationError: If names are missing or unknown.
        """
        _expect_names(levels, self.levels)
        return self.place(np.array([levels[name] for name in self.levels], dtype=np.float64))


def _size(name: str, given: Any) -> int | str:
    """A word, or the whole number that a library gives in a type of its own, such as 2.0."""
    if isinstance(given, str):
        return given
    try:
        is_whole = not isinstance(given, bool) and float(given).is_integer()
    except (TypeError, ValueError, OverflowError):
        is_whole = False
    if not is_whole:
        raise InvalidConfigurationError(f"{name}: expected a whole number, got {given!r}")
    return int(given)


def _expect_names(given: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    if set(given) != set(known):
        raise InvalidConfigurationError(
            f"expected a value for each of {', '.join(known)}, got {', '.join(map(str, given))}"
        )
