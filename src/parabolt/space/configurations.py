"""Configurations by the column: the array twin of `Configuration`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from parabolt.errors import InvalidConfigurationError
from parabolt.space.configuration import Configuration
from parabolt.space.knobs import KNOBS, Shown

if TYPE_CHECKING:
    import numpy.typing as npt

    from parabolt.outcome import IntArray


class Configurations(Sequence[Configuration]):
    """n configurations, a column of values (n,) int64 for each knob as an attribute.

    Args:
        columns: Knob name to values: (n,), or one value that all have. A knob that isn't there has
            its neutral value.
        n: How many; needed only where no column says so.

    Raises:
        InvalidConfigurationError: For an unknown knob, or columns of different lengths.
    """

    def __init__(self, columns: Mapping[str, npt.ArrayLike], n: int | None = None) -> None:
        if unknown := sorted(set(columns) - set(KNOBS)):
            raise InvalidConfigurationError(
                f"expected knobs among {', '.join(KNOBS)}, got {', '.join(unknown)}"
            )
        arrays = {name: np.asarray(values, dtype=np.int64) for name, values in columns.items()}
        self._n = next((len(a) for a in arrays.values() if a.ndim), 1) if n is None else n
        self._fixed = {name: int(array) for name, array in arrays.items() if not array.ndim}
        varied = {name: array for name, array in arrays.items() if array.ndim}
        if any(array.shape != (self._n,) for array in varied.values()):
            shapes = ", ".join(f"{name} {array.shape}" for name, array in varied.items())
            raise InvalidConfigurationError(f"expected columns of {self._n} values, got {shapes}")
        self.__dict__.update(varied)

    @classmethod
    def of(cls, configurations: Sequence[Configuration]) -> Configurations:
        """The columns of configurations."""
        columns = {name: [getattr(c, name) for c in configurations] for name in KNOBS}
        return cls(columns, n=len(configurations))

    def __getattr__(self, name: str) -> IntArray:
        """A column that is the same everywhere; it is made when it is first asked for."""
        if name.startswith("_") or name not in KNOBS:
            raise AttributeError(f"{name!r} is no knob")
        value = self._fixed.get(name, KNOBS[name].neutral)
        if value is None:
            raise InvalidConfigurationError(f"expected a size for {name}, got none")
        column = np.broadcast_to(np.int64(value), self._n)
        self.__dict__[name] = column
        return column

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, index: int) -> Configuration: ...
    @overload
    def __getitem__(self, index: slice) -> Configurations: ...
    def __getitem__(self, index: int | slice) -> Configuration | Configurations:
        if isinstance(index, slice):
            return self.take(index)
        return Configuration(
            **{k: knob.scale.member(int(getattr(self, k)[index])) for k, knob in KNOBS.items()}
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Configurations)
            and len(self) == len(other)
            and not any(
                (getattr(self, name) != getattr(other, name)).any() for name in KNOBS if len(self)
            )
        )

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return Configurations, ({name: getattr(self, name) for name in KNOBS}, self._n)

    def take(self, rows: IntArray | slice) -> Configurations:
        """The configurations at `rows` (m,), in that order."""
        n = len(range(self._n)[rows]) if isinstance(rows, slice) else len(rows)
        varied = {name: column[rows] for name, column in self.varied().items()}
        return Configurations({**self._fixed, **varied}, n=n)

    def stated(self) -> dict[str, IntArray]:
        """Columns (n,) that were given or asked for; any other knob is neutral throughout."""
        return {name: getattr(self, name) for name in KNOBS if name in (self._fixed | vars(self))}

    def varied(self) -> dict[str, IntArray]:
        """Columns that need not be the same everywhere."""
        return {
            name: self.__dict__[name]
            for name in KNOBS
            if name in self.__dict__ and self.__dict__[name].strides != (0,)
        }

    def without(self, *names: str) -> IntArray:
        """The values (n, k) of the k other columns that need not be the same everywhere."""
        columns = [column for name, column in self.varied().items() if name not in names]
        return np.stack(columns, axis=1) if columns else np.zeros((self._n, 0), dtype=np.int64)

    def plain(self) -> dict[str, Any]:
        """Columns as files hold them: lists of words where values have names, else arrays.

        A new knob that is neutral everywhere is left out; see `Shown`.
        """
        columns: dict[str, Any] = {}
        for name, knob in KNOBS.items():
            column = getattr(self, name)
            if knob.shown is Shown.NEVER and (column == knob.neutral).all():
                continue
            columns[name] = [knob.plain(v) for v in column.tolist()] if knob.is_named else column
        return columns

    @classmethod
    def from_plain(cls, columns: Mapping[str, npt.ArrayLike], n: int) -> Configurations:
        """The inverse of `plain`: a missing knob is neutral, and other columns are passed over.

        Raises:
            InvalidConfigurationError: If a knob without neutral value is missing, or for a bad
                value.
        """
        found = {}
        for name, knob in KNOBS.items():
            if name in columns:
                values = np.asarray(columns[name]).tolist()
                checked = {value: knob.check(value) for value in set(values)}
                found[name] = np.array([checked[value] for value in values], dtype=np.int64)
            elif knob.neutral is None:
                raise InvalidConfigurationError(f"expected a column {name}, got none")
        return cls(found, n=n)
