"""The ask/tell contract of every optimizer.

An optimizer sees the candidates, the instance and what it is told, nothing else. `ask` proposes
candidates, `tell` reports an outcome (of any candidate, asked or not, also twice), `recommend`
names the candidate to deploy now.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Literal, overload

import numpy as np

from parabolt.errors import CandidatesExhaustedError, OptionError
from parabolt.optimizers.history import History

if TYPE_CHECKING:
    from parabolt.instances.search_space import SearchSpace
    from parabolt.outcome import IntArray, Outcome
    from parabolt.space.configuration import Configuration

Repeats = Literal["avoid", "allow"]


class Optimizer(ABC):
    """Base of all optimizers.

    Args:
        space: Instance and candidates.
        seed: Seed, or a generator to draw from.
        repeats: Whether a candidate may be proposed again after it has been asked or told. The
            published protocol allows it.

    Raises:
        OptionError: For an option outside what is allowed.
    """

    #: Name in the registry.
    name: str

    def __init__(
        self,
        space: SearchSpace,
        *,
        seed: int | np.random.Generator = 0,
        repeats: Repeats = "avoid",
    ) -> None:
        if repeats not in ("avoid", "allow"):
            raise OptionError(f"repeats: expected 'avoid' or 'allow', got {repeats!r}")
        self.space = space
        self.repeats: Repeats = repeats
        self.rng = _generator(seed)
        self.history = History()
        self._pending: list[int] = []
        self._is_used = np.zeros(len(space), dtype=bool)

    @overload
    def ask(self, n: None = None) -> Configuration: ...
    @overload
    def ask(self, n: int) -> list[Configuration]: ...
    def ask(self, n: int | None = None) -> Configuration | list[Configuration]:
        """The next candidate to try, or the next n at once.

        Args:
            n: Size of the batch; without it a single configuration is returned. A batch is
                shorter than n where fewer candidates are left.

        Raises:
            CandidatesExhaustedError: If repeats are to be avoided and nothing is left.
        """
        if n is not None and (type(n) is not int or n < 1):
            raise OptionError(f"n: expected a positive whole number, got {n!r}")
        batch = [self._ask_row()]
        while len(batch) < (n or 1) and len(self.available_rows()):
            batch.append(self._ask_row())
        configurations = [self.space.candidates[row] for row in batch]
        return configurations if n is not None else configurations[0]

    def tell(self, configuration: Configuration, outcome: Outcome) -> None:
        """Reports what a candidate gave.

        Raises:
            InvalidConfigurationError: If a rule rejects the configuration.
            MissingConfigurationError: If it isn't a candidate.
            ObservationError: If the outcome contradicts itself, such as ok without a throughput.
        """
        row = self.space.row(configuration)
        self.history.add(row, configuration, outcome)
        self._is_used[row] = True
        if row in self._pending:
            self._pending.remove(row)

    def recommend(self) -> Configuration | None:
        """The candidate to deploy now; None while nothing is known to be feasible."""
        row = self._recommended_row()
        return None if row is None else self.space.candidates[row]

    def available_rows(self) -> IntArray:
        """Rows that may be proposed, ascending."""
        if self.repeats == "allow":
            return np.arange(len(self.space))
        return np.flatnonzero(~self._is_used)

    @property
    def pending_rows(self) -> tuple[int, ...]:
        """Rows that were asked and not told yet."""
        return tuple(self._pending)

    def _ask_row(self) -> int:
        available = self.available_rows()
        if len(available) == 0:
            raise CandidatesExhaustedError(
                f"all {len(self.space)} candidates of {self.space.instance.name} have been "
                "proposed; try repeats='allow'"
            )
        row = self._next_row(available)
        self._pending.append(row)
        self._is_used[row] = True
        return row

    @abstractmethod
    def _next_row(self, available: IntArray) -> int:
        """The row to try next, one of `available` (ascending, not empty)."""

    def _recommended_row(self) -> int | None:
        return self.history.best_feasible_row()

    def _random_row(self, available: IntArray) -> int:
        return int(available[self.rng.integers(len(available))])


def _generator(seed: int | np.random.Generator) -> np.random.Generator:
    if isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise OptionError(f"seed: expected a whole number >= 0 or a generator, got {seed!r}")
    return np.random.default_rng(int(seed))
