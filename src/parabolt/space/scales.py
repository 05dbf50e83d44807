"""Scales: which values a knob can take, and how an optimizer sees them.

A scale is to a knob what a distribution is to a parameter in Optuna. A value is an int, or a member
of an `IntEnum` where the values have names. A point is what an optimizer sees: w numbers, w = 1 but
for `Choice`. Symbols: k listed values, n values or points.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from parabolt.errors import InvalidConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from enum import IntEnum

    from parabolt.outcome import FloatArray, IntArray

#: Largest level and value of a scale without a list; an int64 holds them.
_LARGEST_LEVEL = 62
_LARGEST = 1 << _LARGEST_LEVEL


@dataclass(frozen=True)
class Scale(ABC):
    """The values of a knob, or those that an instance lists, and their points.

    Attributes:
        values: The values, ascending; empty for all that the scale allows.
    """

    values: tuple[int, ...] = ()

    def over(self, values: Iterable[int]) -> Self:
        """The same scale with listed values only; bounds and points are theirs."""
        return replace(self, values=tuple(values))

    @property
    @abstractmethod
    def words(self) -> str:
        """What a value must be, such as `a power of two`."""

    @abstractmethod
    def allows(self, value: int) -> bool:
        """Whether a value is on the scale."""

    def allows_list(self, values: tuple[int, ...]) -> bool:
        """Whether an instance may list these values: on the scale, ascending, at least one."""
        return bool(values) and all(map(self.allows, values)) and list(values) == sorted({*values})

    @property
    @abstractmethod
    def label(self) -> str:
        """What a coordinate is, in one word."""

    @property
    def width(self) -> int:
        """Numbers in a point."""
        return 1

    @abstractmethod
    def encode_many(self, values: IntArray) -> FloatArray:
        """Points (n, w) float64 of values (n,) that are on the scale."""

    def encode(self, value: int) -> FloatArray:
        """The point (w,) of one value.

        Raises:
            InvalidConfigurationError: If the value isn't on the scale.
        """
        if not self.allows(value):
            raise InvalidConfigurationError(f"expected {self.words}, got {self.word(value)}")
        point: FloatArray = self.encode_many(np.array([value], dtype=np.int64))[0]
        return point

    @abstractmethod
    def decode(self, point: FloatArray) -> int:
        """The value at a point (w,); the inverse of `encode`.

        Raises:
            InvalidConfigurationError: If there is no value at the point.
        """

    def decode_many(self, points: FloatArray) -> IntArray:
        """The values (n,) of points (n, w); the inverse of `encode_many`."""
        return np.array([self.decode(point) for point in points], dtype=np.int64)

    @cached_property
    def points(self) -> FloatArray:
        """Points (k, w) of the listed values."""
        return self.encode_many(np.array(self.values, dtype=np.int64))

    @property
    def bounds(self) -> FloatArray:
        """Smallest and largest coordinate of the listed values, (2, w)."""
        return np.stack([self.points.min(axis=0), self.points.max(axis=0)])

    def member(self, value: int) -> int:
        """A value as configurations hold it: a member of the enum where the values have names."""
        return value

    def word(self, value: int) -> str:
        """A value as text."""
        return str(int(value))

    def parse(self, text: str) -> int:
        """The value that a text states; the inverse of `word`.

        Raises:
            InvalidConfigurationError: If the text isn't a whole number.
        """
        try:
            return int(text)
        except ValueError as error:
            raise InvalidConfigurationError(f"expected {self.words}, got {text!r}") from error


@dataclass(frozen=True)
class Log2(Scale):
    """Sizes that act by their ratio: positive whole numbers. A point is the logarithm to base 2.

    Attributes:
        unset: What 0 stands for, in words; empty where a size must be stated. 0 has no point, so it
            can be fixed, and not be searched beside sizes.
    """

    unset: str = ""

    @property
    def words(self) -> str:
        """See `Scale`."""
        return f"a positive whole number{f' (or 0: {self.unset})' * bool(self.unset)}"

    @property
    def label(self) -> str:
        """See `Scale`."""
        return "log2"

    def allows(self, value: int) -> bool:
        """See `Scale`."""
        return 1 - bool(self.unset) <= value <= _LARGEST

    def allows_list(self, values: tuple[int, ...]) -> bool:
        """See `Scale`."""
        return super().allows_list(values) and (0 not in values or len(values) == 1)

    def encode_many(self, values: IntArray) -> FloatArray:
        """See `Scale`."""
        return np.log2(values, dtype=np.float64)[:, None]

    def decode(self, point: FloatArray) -> int:
        """See `Scale`."""
        level = float(point[0])
        if not 0.0 <= level <= _LARGEST_LEVEL:
            raise InvalidConfigurationError(
                f"expected a level from 0 to {_LARGEST_LEVEL}, got {level:g}"
            )
        value = 1 << int(level) if level == int(level) else round(2.0**level)
        if np.log2(value) != level:
            raise InvalidConfigurationError(f"expected the log2 of a whole number, got {level:g}")
        return value


@dataclass(frozen=True)
class Integers(Scale):
    """Whole numbers that act by their difference. A point is the number itself.

    Attributes:
        least: The smallest one.
    """

    least: int = 0

    @property
    def words(self) -> str:
        """See `Scale`."""
        return f"a whole number of at least {self.least}"

    @property
    def label(self) -> str:
        """See `Scale`."""
        return "number"

    def allows(self, value: int) -> bool:
        """See `Scale`."""
        return self.least <= value <= _LARGEST

    def encode_many(self, values: IntArray) -> FloatArray:
        """See `Scale`."""
        return values.astype(np.float64)[:, None]

    def decode(self, point: FloatArray) -> int:
        """See `Scale`."""
        value = round(float(point[0]))
        if value != point[0] or not self.allows(value):
            raise InvalidConfigurationError(f"expected {self.words}, got {point[0]:g}")
        return value


@dataclass(frozen=True)
class _Listed(Scale):
    """A scale with a fixed list of values, which have names where they are those of an enum.

    Attributes:
        names: Class of the values; None for plain numbers.
    """

    names: type[IntEnum] | None = None

    @classmethod
    def of(cls, names: type[IntEnum]) -> Self:
        """The scale of all members of an enum; a member's word is its name in lower case."""
        return cls(tuple(names), names)

    @property
    def words(self) -> str:
        """See `Scale`."""
        return f"one of {', '.join(map(self.word, self.values))}"

    @property
    def label(self) -> str:
        """See `Scale`."""
        return "ordinal"

    def allows(self, value: int) -> bool:
        """See `Scale`."""
        return value in self.values

    def member(self, value: int) -> int:
        """See `Scale`."""
        return value if self.names is None else self.names(value)

    def word(self, value: int) -> str:
        """See `Scale`."""
        if self.names is None or value not in list(self.names):
            return super().word(value)
        return self.names(value).name.lower().removeprefix("_")

    def parse(self, text: str) -> int:
        """See `Scale`."""
        if self.names is None:
            return super().parse(text)
        members = {self.word(member): member for member in self.names}
        if text not in members:
            raise InvalidConfigurationError(f"expected one of {', '.join(members)}, got {text!r}")
        return members[text]

    def _position(self, position: float) -> int:
        if position not in range(len(self.values)):
            last = len(self.values) - 1
            raise InvalidConfigurationError(
                f"expected an ordinal from 0 to {last}, got {position:g}"
            )
        return self.values[int(position)]


@dataclass(frozen=True)
class Ordinal(_Listed):
    """Values in an order without a measure. A point is the position in the list."""

    def encode_many(self, values: IntArray) -> FloatArray:
        """See `Scale`."""
        return np.searchsorted(np.array(self.values), values).astype(np.float64)[:, None]

    def decode(self, point: FloatArray) -> int:
        """See `Scale`."""
        return self._position(float(point[0]))


@dataclass(frozen=True)
class Choice(_Listed):
    """Values without an order. Of k > 2 values a point has k numbers, a 1 among zeros."""

    @property
    def width(self) -> int:
        """See `Scale`."""
        return 1 if len(self.values) <= 2 else len(self.values)

    def encode_many(self, values: IntArray) -> FloatArray:
        """See `Scale`."""
        positions = np.searchsorted(np.array(self.values), values)
        if self.width == 1:
            return positions.astype(np.float64)[:, None]
        return np.eye(self.width)[positions]

    def decode(self, point: FloatArray) -> int:
        """See `Scale`."""
        if self.width == 1:
            return self._position(float(point[0]))
        if sorted(point) != [0.0] * (self.width - 1) + [1.0]:
            raise InvalidConfigurationError(f"expected a 1 among zeros, got {point.tolist()}")
        return self.values[int(np.argmax(point))]
