"""The search encoding: configurations as rows of small integers, and as one integer code.

Symbols: n rows, d searched knobs. A row holds log2 of each size, and the ordinal of the ZeRO stage
(0, 1, 2 for stage 0, 2, 3). X is (n, d) float64. A code is the mixed-radix number of a row within
the bounds, so ascending codes are lexicographic rows.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from parabolt.errors import InvalidConfigurationError
from parabolt.space.configuration import Configuration
from parabolt.space.knobs import KNOBS, ZERO_STAGES, Knob
from parabolt.space.rules import Sizes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from parabolt.outcome import FloatArray, IntArray

#: Largest code space that is indexed by a plain array; beyond it codes are searched by bisection.
_DENSE_CODES = 1 << 26

#: Levels beyond are clipped: so the product of two sizes fits an int64, and that of four, where it
#: overflows, is 0 or negative, hence no number of GPUs.
_LARGEST_LEVEL = 31


class Encoding:
    """Exact two-way map between configurations and encoded rows.

    Args:
        levels: Raw sizes of each knob, ascending. Knobs with one level are constants and not part
            of a row.
    """

    def __init__(self, levels: Mapping[str, Sequence[int]]) -> None:
        self.knobs: tuple[Knob, ...] = tuple(
            knob for name, knob in KNOBS.items() if len(levels[name]) > 1
        )
        self.constants: dict[str, int] = {
            name: levels[name][0] for name in KNOBS if len(levels[name]) == 1
        }
        ends = [
            (knob.encode(levels[knob.name][0]), knob.encode(levels[knob.name][-1]))
            for knob in self.knobs
        ]
        bounds = np.array(ends, dtype=np.int64).reshape(-1, 2)
        self._lower, self._upper = bounds[:, 0].copy(), bounds[:, 1].copy()
        radix = self._upper - self._lower + 1
        self.n_codes = int(np.prod(radix, dtype=np.float64))
        self._strides = np.append(np.cumprod(radix[::-1])[-2::-1], 1)[: len(radix)]

    @property
    def bounds(self) -> FloatArray:
        """Smallest and largest level of each searched knob, (2, d) float64."""
        return np.stack([self._lower, self._upper]).astype(np.float64)

    def encode(self, configurations: Sequence[Configuration]) -> FloatArray:
        """Encoded rows (n, d) float64 of n configurations.

        Raises:
            InvalidConfigurationError: If a constant knob isn't at its constant.
        """
        for configuration in configurations:
            self._check_constants(configuration)
        rows = [[k.encode(getattr(c, k.name)) for k in self.knobs] for c in configurations]
        return np.array(rows, dtype=np.float64).reshape(-1, len(self.knobs))

    def encode_sizes(self, sizes: IntArray) -> FloatArray:
        """Encoded rows (n, d) of raw sizes (n, 9) whose columns are in the order of `KNOBS`."""
        columns = {name: sizes[:, i] for i, name in enumerate(KNOBS)}
        encoded = [
            np.log2(columns[k.name]) if k.is_log2 else np.searchsorted(ZERO_STAGES, columns[k.name])
            for k in self.knobs
        ]
        return np.stack(encoded, axis=1).astype(np.float64)

    def decode(self, X: npt.ArrayLike) -> list[Configuration]:
        """Configurations of encoded rows (n, d); the inverse of `encode`.

        Raises:
            InvalidConfigurationError: If a row isn't on the lattice of whole levels.
        """
        return [self._decode_row(row) for row in self.whole_levels(X)]

    def whole_levels(self, X: npt.ArrayLike) -> IntArray:
        """Encoded rows as int64 (n, d).

        Raises:
            InvalidConfigurationError: If the shape is wrong or a level isn't a whole number.
        """
        rows = np.asarray(X)
        if rows.ndim != 2 or rows.shape[1] != len(self.knobs):
            raise InvalidConfigurationError(
                f"expected encoded rows of shape (n, {len(self.knobs)}) with columns "
                f"{', '.join(k.name for k in self.knobs)}, got shape {rows.shape}"
            )
        if rows.dtype.kind not in "iuf":
            raise InvalidConfigurationError(f"expected numbers, got dtype {rows.dtype}")
        if rows.dtype.kind == "f" and not np.isfinite(rows).all():
            raise InvalidConfigurationError("expected finite levels, got NaN or inf")
        levels = rows.astype(np.int64)
        if not np.array_equal(levels, rows):
            row, column = np.argwhere(levels != rows)[0]
            raise InvalidConfigurationError(
                f"row {row}, {self.knobs[column].column}: expected a whole level, "
                f"got {rows[row, column]}"
            )
        return levels

    def codes(self, levels: IntArray) -> IntArray:
        """Codes (n,) of whole levels (n, d); -1 where a level is out of bounds."""
        inside = ((levels >= self._lower) & (levels <= self._upper)).all(axis=1)
        return np.where(inside, (levels - self._lower) @ self._strides, -1)

    def levels(self, codes: IntArray) -> IntArray:
        """Whole levels (n, d) of codes (n,) within the bounds; the inverse of `codes`."""
        digits: IntArray = codes[:, None] // self._strides % (self._upper - self._lower + 1)
        return digits + self._lower

    def sizes(self, levels: IntArray) -> Sizes:
        """Raw sizes of whole levels (n, d) as columns (n,), constants included.

        Levels out of bounds are clipped to what an int64 can hold; `codes` tells them.
        """
        columns: dict[str, IntArray] = {}
        for name in KNOBS:
            columns[name] = np.full(len(levels), self.constants.get(name, 0))
        for i, knob in enumerate(self.knobs):
            column = levels[:, i]
            columns[knob.name] = (
                np.left_shift(1, np.clip(column, 0, _LARGEST_LEVEL))
                if knob.is_log2
                else np.asarray(ZERO_STAGES)[np.clip(column, 0, len(ZERO_STAGES) - 1)]
            )
        return Sizes(columns)

    def code(self, configuration: Configuration) -> int:
        """Code of one configuration; -1 where a size is out of bounds or off its constant."""
        code = 0
        for name, is_log2, lower, upper, stride in self._scalars:
            size = getattr(configuration, name)
            level = size.bit_length() - 1 if is_log2 else ZERO_STAGES.index(size)
            if not lower <= level <= upper:
                return -1
            code += (level - lower) * stride
        for name, size in self.constants.items():
            if getattr(configuration, name) != size:
                return -1
        return code

    @cached_property
    def _scalars(self) -> list[tuple[str, bool, int, int, int]]:
        lower, upper, strides = self._lower.tolist(), self._upper.tolist(), self._strides.tolist()
        return [
            (k.name, k.is_log2, lower[i], upper[i], strides[i]) for i, k in enumerate(self.knobs)
        ]

    def _decode_row(self, row: IntArray) -> Configuration:
        sizes = {k.name: k.decode(int(level)) for k, level in zip(self.knobs, row, strict=True)}
        return Configuration(**sizes, **self.constants)

    def _check_constants(self, configuration: Configuration) -> None:
        for name, size in self.constants.items():
            if (got := getattr(configuration, name)) != size:
                raise InvalidConfigurationError(
                    f"{configuration}: {name} is fixed at {size} in this instance, got {got}"
                )


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
