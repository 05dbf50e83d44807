"""The candidates of an instance: what an optimizer may try, and all it knows beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, overload

import numpy as np

from parabolt.errors import (
    InstanceError,
    InvalidConfigurationError,
    MissingConfigurationError,
)
from parabolt.space.configuration import Configuration, are_configurations
from parabolt.space.configurations import Configurations
from parabolt.space.encoding import RowIndex
from parabolt.space.lattice import enumerate_lattice
from parabolt.space.lazy_lattice import LazyLattice

if TYPE_CHECKING:
    import numpy.typing as npt

    from parabolt.instances.specs import Instance
    from parabolt.outcome import FloatArray, IntArray


#: Configurations that are listed at most; of more, some can be drawn.
MOST_LISTED = 5_000_000


class Candidates(Sequence[Configuration]):
    """The candidates as configurations, decoded on demand, so that a million cost nothing."""

    def __init__(self, space: SearchSpace) -> None:
        self._space = space

    def __len__(self) -> int:
        return len(self._space)

    @overload
    def __getitem__(self, index: int) -> Configuration: ...
    @overload
    def __getitem__(self, index: slice) -> list[Configuration]: ...
    def __getitem__(self, index: int | slice) -> Configuration | list[Configuration]:
        if isinstance(index, slice):
            return self._space.instance.encoding.decode(self._space.encoded[index])
        return self._space.instance.encoding.decode(self._space.encoded[index][None])[0]


class SearchSpace:
    """An instance and its finite candidate set.

    Args:
        instance: The instance.
        encoded: Candidates as encoded rows (n, d); duplicates are refused.

    Raises:
        InvalidConfigurationError: If a row is off the lattice's bounds, or stands there twice.
    """

    def __init__(self, instance: Instance, encoded: npt.ArrayLike) -> None:
        rows = np.array(encoded, dtype=np.float64)
        codes = instance.encoding.codes(rows)
        if len(codes) == 0:
            raise InvalidConfigurationError(f"{instance.name}: expected candidates, got none")
        if (codes < 0).any():
            row = int(np.argmin(codes))
            instance.check(instance.encoding.decode(rows[row : row + 1])[0])
        if len(np.unique(codes)) < len(codes):
            order = np.argsort(codes, kind="stable")
            twice = order[1:][np.diff(codes[order]) == 0][0]
            raise InvalidConfigurationError(f"expected distinct candidates, got row {twice} twice")
        self.instance = instance
        self.encoded: FloatArray = rows
        self.encoded.flags.writeable = False
        self._index = RowIndex(codes, instance.encoding.n_codes)

    @classmethod
    def lattice(cls, instance: Instance) -> SearchSpace:
        """All valid configurations of an instance, in canonical order.

        Raises:
            InstanceError: If there are more than `MOST_LISTED`; their number is exact.
        """
        levels = dict(instance.levels)
        if prod(map(len, levels.values())) > MOST_LISTED:
            n = LazyLattice(levels, instance.rules).n
            if n > MOST_LISTED:
                raise InstanceError(
                    f"{instance.name}: expected at most {MOST_LISTED:,} configurations to list, "
                    f"got {n:,}; try fewer values of a knob, or SearchSpace.sampled"
                )
        return cls(instance, instance.encoding.encode(enumerate_lattice(levels, instance.rules)))

    @classmethod
    def sampled(cls, instance: Instance, n: int, *, seed: int) -> SearchSpace:
        """As many distinct valid configurations, each as likely as any other, in canonical order.

        Args:
            instance: The instance, whose lattice may be too large to be listed.
            n: How many; all where there are no more.
            seed: Seed of the draw.
        """
        lattice = LazyLattice(dict(instance.levels), instance.rules)
        drawn = lattice.sample(n, np.random.default_rng(seed))
        return cls(instance, instance.encoding.encode(drawn))

    def __reduce__(self) -> tuple[object, ...]:
        return SearchSpace, (self.instance, self.encoded)

    def __len__(self) -> int:
        return len(self.encoded)

    @cached_property
    def unit_cube(self) -> FloatArray:
        """The candidates' encoded rows (n, d) in the unit cube of the encoding's bounds."""
        inputs = self.instance.encoding.to_unit(self.encoded)
        inputs.flags.writeable = False
        return inputs

    @property
    def candidates(self) -> Candidates:
        """The candidates as a sequence of `Configuration`, in row order."""
        return Candidates(self)

    def row(self, configuration: Configuration) -> int:
        """Row number of a candidate.

        Raises:
            InvalidConfigurationError: If a rule rejects the configuration, with its reason.
            MissingConfigurationError: If it is valid but not a candidate.
        """
        row = self._index.row(self.instance.encoding.code(configuration))
        if row < 0:
            self._refuse(configuration)
        return row

    def rows(self, X: npt.ArrayLike | Sequence[Configuration]) -> IntArray:
        """Row numbers (n,) of encoded rows (n, d) or of n configurations.

        Raises:
            InvalidConfigurationError: If a rule rejects one of them, with its reason.
            MissingConfigurationError: If one is valid but not a candidate.
        """
        encoding = self.instance.encoding
        if isinstance(X, Configurations):
            rows = self._index.rows(encoding.codes_of(X))
        elif are_configurations(X):
            return np.array([self.row(c) for c in X], dtype=np.int64)
        else:
            X = np.asarray(X)
            rows = self._index.rows(encoding.codes(X))
        if (rows < 0).any():
            first = int(np.argmax(rows < 0))
            X = X[first : first + 1]
            self._refuse(X[0] if isinstance(X, Configurations) else encoding.decode(X)[0])
        return rows

    def nearest_rows(self, X: npt.ArrayLike) -> IntArray:
        """Row numbers (n,) of the candidates nearest to any points (n, d) of the encoding.

        Euclidean distance; of several at the same distance the first.
        """
        points = np.atleast_2d(np.asarray(X, dtype=np.float64))
        squares = (self.encoded**2).sum(axis=1)
        nearest = [
            (squares - 2.0 * block @ self.encoded.T).argmin(axis=1)
            for block in np.array_split(points, max(1, len(points) * len(self) >> 22))
        ]
        return np.concatenate(nearest)

    def _refuse(self, configuration: Configuration) -> None:
        self.instance.check(configuration)
        raise MissingConfigurationError(
            f"{configuration} is valid for {self.instance.name}, but not among its {len(self)} "
            "candidates"
        )
