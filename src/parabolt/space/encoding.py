"""The search encoding: configurations as rows of numbers, and as one integer code.

Symbols: n rows, a axes (searched knobs), d numbers in a row. A row holds each knob's point on its
scale: log2 of a size, the position of a ZeRO stage. X is (n, d) float64; d = a unless a knob is a
choice among more than two. A code is the mixed-radix number of the values' positions, so ascending
codes are lexicographic configurations.
"""

from __future__ import annotations

from functools import cached_property
from math import prod
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.errors import InvalidConfigurationError
from parabolt.space.axis import Axis
from parabolt.space.configuration import Configuration
from parabolt.space.configurations import Configurations
from parabolt.space.knobs import KNOBS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from parabolt.outcome import FloatArray, IntArray
    from parabolt.space.knobs import Knob

#: Largest code space that is indexed by a plain array; beyond it codes are searched by bisection.
_DENSE_CODES = 1 << 26
#: Codes beyond it are no int64.
_LARGEST_CODE = 1 << 62


def side_by_side(columns: list[IntArray], n: int) -> IntArray:
    """Columns of n rows as an array (n, a), also where no knob is searched and there are none."""
    return np.stack(columns, axis=1) if columns else np.zeros((n, 0), dtype=np.int64)


class Encoding:
    """Exact two-way map between configurations and encoded rows.

    Args:
        levels: Values of each knob, ascending. Knobs with one value are constants and not part of a
            row.

    Attributes:
        axes: The searched knobs with their values, in canonical order.
        constants: The other knobs, and their value.
        labels: A name (d) for each column of a row.
    """

    def __init__(self, levels: Mapping[str, Sequence[int]]) -> None:
        self.axes = tuple(
            Axis(knob, tuple(levels[name])) for name, knob in KNOBS.items() if len(levels[name]) > 1
        )
        self.constants: dict[str, int] = {
            name: levels[name][0] for name in KNOBS if len(levels[name]) == 1
        }
        self.labels = tuple(label for axis in self.axes for label in axis.labels)
        self._sizes = np.array([len(axis.values) for axis in self.axes], dtype=np.int64)
        sizes = [len(axis.values) for axis in self.axes]
        self.n_codes = prod(sizes)
        #: Codes that int64 does not hold are Python's whole numbers.
        dtype = np.int64 if self.n_codes < _LARGEST_CODE else object
        self._strides: Any = np.array([prod(sizes[i + 1 :]) for i in range(len(sizes))], dtype)
        firsts = [axis.first_level for axis in self.axes]
        #: Where all points are consecutive whole numbers, the first of each.
        self._firsts = None if None in firsts else np.array(firsts, dtype=np.int64)

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """The searched knobs, in canonical order."""
        return tuple(axis.knob for axis in self.axes)

    @property
    def bounds(self) -> FloatArray:
        """Smallest and largest number of each column, (2, d) float64."""
        if not self.axes:
            return np.zeros((2, 0))
        return np.hstack([axis.scale.bounds for axis in self.axes])

    @property
    def ranges(self) -> dict[str, tuple[int, int] | tuple[float, float]]:
        """Label to the bounds of each column: ints where it holds whole numbers only."""
        ranges: dict[str, tuple[int, int] | tuple[float, float]] = {}
        for axis in self.axes:
            for label, points in zip(axis.labels, axis.scale.points.T, strict=True):
                low, high = float(points.min()), float(points.max())
                is_whole = (points == np.rint(points)).all()
                ranges[label] = (int(low), int(high)) if is_whole else (low, high)
        return ranges

    def encode(self, configurations: Sequence[Configuration] | Configurations) -> FloatArray:
        """Encoded rows (n, d) float64 of n configurations.

        Raises:
            InvalidConfigurationError: If a constant knob isn't at its constant, or a value isn't
                listed.
        """
        if not isinstance(configurations, Configurations):
            configurations = Configurations.of(configurations)
        for name, value in self.constants.items():
            if len(wrong := np.flatnonzero(getattr(configurations, name) != value)):
                word = KNOBS[name].scale.word
                found = configurations[int(wrong[0])]
                raise InvalidConfigurationError(
                    f"{found}: {name} is fixed at {word(value)} in this instance, got "
                    f"{word(getattr(found, name))}"
                )
        points = [self._points(axis, configurations) for axis in self.axes]
        return np.hstack(points) if points else np.zeros((len(configurations), 0))

    def decode(self, X: npt.ArrayLike) -> list[Configuration]:
        """Configurations of encoded rows (n, d); the inverse of `encode`.

        Raises:
            InvalidConfigurationError: If a row isn't on the scales of its knobs.
        """
        rows = self._checked(X)
        if (self._positions(rows) >= 0).all():
            return list(self.configurations(rows))
        return [self._decode_row(row) for row in rows]

    def configurations(self, X: npt.ArrayLike) -> Configurations:
        """Configurations of encoded rows (n, d), as columns.

        Raises:
            InvalidConfigurationError: If a row holds what is not listed.
        """
        rows = self._checked(X)
        positions = self._positions(rows)
        if (positions < 0).any():
            row = int(np.argmax((positions < 0).any(axis=1)))
            raise InvalidConfigurationError(
                f"row {row}: {self._decode_row(rows[row])} has a value that is not listed"
            )
        return self.at(positions)

    def positions(self, X: npt.ArrayLike) -> IntArray:
        """Positions (n, a) on the axes of encoded rows (n, d); -1 where a value is not listed.

        Raises:
            InvalidConfigurationError: If the shape is wrong, or a row isn't on the scales.
        """
        return self._positions(self._checked(X))

    def codes(self, X: npt.ArrayLike) -> IntArray:
        """Codes (n,) of encoded rows (n, d); -1 where a value is not listed.

        Raises:
            InvalidConfigurationError: If the shape is wrong, or a row isn't on the scales.
        """
        return self.codes_at(self.positions(X))

    def codes_of(self, configurations: Configurations) -> IntArray:
        """Codes (n,) of configurations; -1 where a value is not listed or off its constant."""
        columns = [a.positions_of(getattr(configurations, a.knob.name)) for a in self.axes]
        codes = self.codes_at(side_by_side(columns, len(configurations)))
        for name, value in self.constants.items():
            codes[getattr(configurations, name) != value] = -1
        return codes

    def codes_at(self, positions: IntArray) -> IntArray:
        """Codes (n,) of positions (n, a); -1 where one is -1."""
        return np.where((positions >= 0).all(axis=1), positions @ self._strides, -1)

    def from_codes(self, codes: IntArray) -> Configurations:
        """Configurations of codes (n,); the inverse of `codes`."""
        return self.at((codes[:, None] // self._strides % self._sizes).astype(np.int64))

    def code(self, configuration: Configuration) -> int:
        """Code of one configuration; -1 where a value is not listed or off its constant."""
        code = 0
        for name, steps in self._steps:
            step = steps.get(getattr(configuration, name))
            if step is None:
                return -1
            code += step
        return code if self._constants_of(configuration) == self._constants else -1

    def cells(self, configurations: Configurations) -> dict[str, npt.NDArray[Any]]:
        """Input columns (n,) of a table: ints, or words where values have names."""
        return {
            axis.column: np.array(axis.cells)[axis.positions_of(getattr(configurations, name))]
            for name, axis in ((axis.knob.name, axis) for axis in self.axes)
        }

    def to_unit(self, X: FloatArray) -> FloatArray:
        """Encoded rows (n, d) in the unit cube of the bounds."""
        lower, upper = self.bounds
        return np.asarray((X - lower) / (upper - lower))

    def from_unit(self, U: FloatArray) -> Configurations:
        """The configurations whose values are nearest, knob by knob, to points (n, d) of the cube.

        It need not be valid.
        """
        lower, upper = self.bounds
        rows = lower + U * (upper - lower)
        if self._firsts is not None:
            positions = np.rint(rows).astype(np.int64) - self._firsts
            return self.at(np.clip(positions, 0, self._sizes - 1))
        columns = [axis.nearest_positions(points) for axis, points in self._split(rows)]
        return self.at(side_by_side(columns, len(rows)))

    def at(self, positions: IntArray) -> Configurations:
        """Configurations of the positions (n, a) of their values on the axes."""
        columns: dict[str, Any] = {
            axis.knob.name: axis.array[positions[:, i]] for i, axis in enumerate(self.axes)
        }
        return Configurations({**self.constants, **columns}, n=len(positions))

    def _points(self, axis: Axis, configurations: Configurations) -> FloatArray:
        values = getattr(configurations, axis.knob.name)
        positions = axis.positions_of(values)
        if (positions >= 0).all():
            return axis.scale.points[positions]
        return np.stack([axis.scale.encode(int(value)) for value in values])

    def _checked(self, X: npt.ArrayLike) -> FloatArray:
        """X as an array of finite numbers of the right shape."""
        rows = np.asarray(X)
        if rows.ndim != 2 or rows.shape[1] != len(self.labels):
            columns = ", ".join(knob.name for knob in self.knobs)
            raise InvalidConfigurationError(
                f"expected encoded rows of shape (n, {len(self.labels)}) with columns {columns}, "
                f"got shape {rows.shape}"
            )
        if rows.dtype.kind not in "iuf":
            raise InvalidConfigurationError(f"expected numbers, got dtype {rows.dtype}")
        if rows.dtype.kind == "f" and not np.isfinite(rows).all():
            raise InvalidConfigurationError("expected finite levels, got NaN or inf")
        return rows

    def _positions(self, rows: FloatArray) -> IntArray:
        """Positions (n, a) of checked rows; -1 where a value is not listed."""
        if self._firsts is None:
            found = [axis.positions_at(points) for axis, points in self._split(rows)]
            return np.stack(found, axis=1)
        levels = rows.astype(np.int64)
        if not np.array_equal(levels, rows):
            row, column = np.argwhere(levels != rows)[0]
            raise InvalidConfigurationError(
                f"row {row}, {self.axes[column].column}: expected a whole level, "
                f"got {rows[row, column]}"
            )
        positions = levels - self._firsts
        return np.where((positions >= 0) & (positions < self._sizes), positions, -1)

    def _split(self, rows: FloatArray) -> list[tuple[Axis, FloatArray]]:
        widths = [axis.scale.width for axis in self.axes]
        return list(zip(self.axes, np.split(rows, np.cumsum(widths)[:-1], axis=1), strict=True))

    def _decode_row(self, row: FloatArray) -> Configuration:
        values = {a.knob.name: a.value_at(points[0]) for a, points in self._split(row[None])}
        members = {k: KNOBS[k].scale.member(v) for k, v in {**values, **self.constants}.items()}
        return Configuration(**members)

    @cached_property
    def _steps(self) -> list[tuple[str, dict[int, int]]]:
        """For each axis what every value adds to the code."""
        return [
            (axis.knob.name, {value: i * stride for i, value in enumerate(axis.values)})
            for axis, stride in zip(self.axes, self._strides.tolist(), strict=True)
        ]

    @cached_property
    def _constants(self) -> object:
        values = tuple(self.constants.values())
        return values[0] if len(values) == 1 else values

    @cached_property
    def _constants_of(self) -> Callable[[Configuration], object]:
        return attrgetter(*self.constants) if self.constants else lambda _: ()


class RowIndex:
    """Row number of a code: one array look-up, or a bisection where the code space is huge.

    Args:
        codes: Distinct codes (n,) of the rows.
        n_codes: Size of the code space.
    """

    def __init__(self, codes: IntArray, n_codes: int) -> None:
        self._is_dense = n_codes <= _DENSE_CODES
        if self._is_dense:
            self._rows = np.full(n_codes + 1, -1, dtype=np.int32)  # the last one answers code -1
            self._rows[codes] = np.arange(len(codes), dtype=np.int32)
        else:
            self._order = np.argsort(codes)
            self._sorted = codes[self._order]

    def rows(self, codes: IntArray) -> IntArray:
        """Row numbers (n,) int64 of codes (n,); -1 where there is no such row."""
        if self._is_dense:
            return self._rows[codes].astype(np.int64)
        at = np.minimum(np.searchsorted(self._sorted, codes), len(self._sorted) - 1)
        return np.where(self._sorted[at] == codes, self._order[at], -1)

    def row(self, code: int) -> int:
        """Row number of one code; -1 where there is no such row."""
        if self._is_dense:
            return int(self._rows[code])
        return int(self.rows(np.array([code]))[0])
