"""An axis: one searched knob of an instance, with the values that the instance lists."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from parabolt.errors import InvalidConfigurationError
from parabolt.space.scales import Choice, Log2

if TYPE_CHECKING:
    from collections.abc import Sequence

    from parabolt.outcome import FloatArray, IntArray
    from parabolt.space.knobs import Knob
    from parabolt.space.scales import Scale

_LOG2 = "log2_"


@dataclass(frozen=True, eq=False)
class Axis:
    """A knob over k listed values. A position is the number of a value in the list, from 0.

    Attributes:
        knob: The knob.
        values: The values, ascending.
    """

    knob: Knob
    values: tuple[int, ...]

    @cached_property
    def scale(self) -> Scale:
        """The knob's scale over the listed values."""
        return self.knob.scale.over(self.values)

    @property
    def words(self) -> tuple[str, ...]:
        """The values as texts."""
        return tuple(map(self.knob.scale.word, self.values))

    @cached_property
    def array(self) -> IntArray:
        """The values (k,) int64."""
        return np.array(self.values, dtype=np.int64)

    @property
    def labels(self) -> tuple[str, ...]:
        """A name for each of the w coordinates, such as `dp_log2`, `zero_ordinal`."""
        if self.scale.width > 1:
            return tuple(f"{self.knob.name}_{word}" for word in self.words)
        return (f"{self.knob.name}_{self.scale.label}",)

    @cached_property
    def first_level(self) -> int | None:
        """The first point, where points are consecutive whole numbers; None where they are not."""
        points = self.scale.points
        steps = np.arange(len(points)) + points[0, 0]
        is_whole = points.shape[1] == 1 and np.array_equal(points[:, 0], steps)
        return int(points[0, 0]) if is_whole and points[0, 0] == int(points[0, 0]) else None

    def positions_of(self, values: IntArray) -> IntArray:
        """Positions (n,) of values (n,); -1 where one isn't listed."""
        at = np.minimum(np.searchsorted(self.array, values), len(self.array) - 1)
        return np.where(self.array[at] == values, at, -1)

    def positions_at(self, points: FloatArray) -> IntArray:
        """Positions (n,) of points (n, w); -1 where one is on the scale, but not listed.

        Raises:
            InvalidConfigurationError: If a point is not on the scale.
        """
        own = self.scale.points
        if self.scale.width == 1:
            at = np.minimum(np.searchsorted(own[:, 0], points[:, 0]), len(own) - 1)
        else:
            at = points.argmax(axis=1)
        found = np.where((own[at] == points).all(axis=1), at, -1)
        for row in np.flatnonzero(found < 0):
            self.value_at(points[row], int(row))
        return found

    def nearest_positions(self, points: FloatArray) -> IntArray:
        """Positions (n,) of the values whose points are nearest to any points (n, w)."""
        own = self.scale.points
        if self.scale.width == 1:
            return np.asarray(np.searchsorted((own[1:, 0] + own[:-1, 0]) / 2.0, points[:, 0]))
        return np.asarray(points.argmax(axis=1))

    def value_at(self, point: FloatArray, row: int = 0) -> int:
        """The value of a point (w,), listed or not.

        Raises:
            InvalidConfigurationError: If the point is not on the scale.
        """
        try:
            return self.scale.decode(point)
        except InvalidConfigurationError as error:
            raise InvalidConfigurationError(f"row {row}, {self.column}: {error}") from error

    @property
    def has_logarithms(self) -> bool:
        """Whether a table holds the logarithms of the values: all of them are powers of two."""
        is_log2 = isinstance(self.knob.scale, Log2) and self.knob.column.startswith(_LOG2)
        return is_log2 and all(value and not value & (value - 1) for value in self.values)

    @property
    def column(self) -> str:
        """Column of a table. Where sizes aren't powers of two it holds them as they are."""
        return self.knob.column if self.has_logarithms else self.knob.column.removeprefix(_LOG2)

    @property
    def dtype(self) -> Literal["int64", "string"]:
        """Type of the table's column."""
        return "string" if self.knob.is_named else "int64"

    @property
    def meaning(self) -> str:
        """What the table's column holds, in words."""
        if self.has_logarithms:
            return f"log2 of {self.knob.meaning}"
        if isinstance(self.knob.scale, Log2):
            return self.knob.meaning
        words = list(self.words) if self.knob.is_named else list(self.values)
        return f"{self.knob.meaning}, one of {words}"

    @property
    def cells(self) -> tuple[int | str, ...]:
        """What a table holds for each value."""
        if self.has_logarithms:
            return tuple(value.bit_length() - 1 for value in self.values)
        return self.words if self.knob.is_named else self.values

    def cell(self, value: int) -> int | str:
        """What a table holds for a value."""
        return self.cells[self.values.index(value)]

    def positions_in(self, cells: Sequence[Any] | IntArray) -> IntArray:
        """Positions (n,) of a table's cells (n,); -1 where one isn't listed."""
        if not self.knob.is_named:
            own = np.array(self.cells, dtype=np.int64)
            at = np.minimum(np.searchsorted(own, cells), len(own) - 1)
            return np.where(own[at] == cells, at, -1)
        found = np.full(len(cells), -1, dtype=np.int64)
        for position, cell in enumerate(self.cells):
            found[np.equal(cells, cell)] = position
        return found

    @property
    def is_choice(self) -> bool:
        """Whether the values have no order."""
        return isinstance(self.knob.scale, Choice)
