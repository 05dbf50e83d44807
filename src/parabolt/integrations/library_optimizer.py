"""Other libraries' optimizers on a finite candidate set: the part that they share."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.errors import OptionError
from parabolt.integrations.box import CandidateBox
from parabolt.optimizers.initial_design import DesignedOptimizer

if TYPE_CHECKING:
    from parabolt.instances.search_space import SearchSpace
    from parabolt.outcome import FloatArray, IntArray, Outcome
    from parabolt.space.configuration import Configuration


class LibraryOptimizer(DesignedOptimizer):
    """Asks another library over the box, and tries the nearest candidate that is available.

    The library is set up when the initial design is over, and is then told the design. The
    arguments are those of `DesignedOptimizer`, but that other libraries can't be hurried.

    Raises:
        OptionError: If a time limit is asked for.
    """

    #: Distributions that results depend on, beside those of this package.
    libraries: tuple[str, ...]

    def __init__(self, space: SearchSpace, **options: Any) -> None:
        super().__init__(space, **options)
        if self.ask_time_limit_s is not None:
            raise OptionError(
                f"{self.name}: expected no ask_time_limit_s, got {self.ask_time_limit_s}; "
                "another library's optimizer can't be cut short"
            )
        self.box = CandidateBox(space)
        self._is_set_up = False
        self._open: dict[int, list[Any]] = {}
        self._told_before: list[tuple[int, Outcome]] = []

    @abstractmethod
    def _set_up(self, seed: int) -> None:
        """Makes the library's optimizer."""

    @abstractmethod
    def _propose(self) -> tuple[Any, FloatArray]:
        """The library's own record of a proposal, and the encoded point (d,) that it proposes.

        The record is None where the library didn't propose it.
        """

    @abstractmethod
    def _report(self, proposal: Any, row: int, outcome: Outcome) -> None:
        """Tells the library what candidate `row` gave; `proposal` is None if it didn't ask."""

    def _random_proposal(self) -> tuple[Any, FloatArray]:
        """A candidate at random, where the library has nothing to propose."""
        return None, self.space.encoded[self.rng.integers(len(self.space))]

    def _model_row(self, available: IntArray) -> int:
        if not self._is_set_up:
            self._set_up(int(self.rng.integers(2**31)))
            self._is_set_up = True
            for row, outcome in self._told_before:
                self._report(None, row, outcome)
        proposal, point = self._propose()
        row = int(available[np.argmin(self.box.distances(point)[available])])
        self._open.setdefault(row, []).append(proposal)
        return row

    def tell(self, configuration: Configuration, outcome: Outcome) -> None:
        """See `Optimizer.tell`."""
        super().tell(configuration, outcome)
        row = self.space.row(configuration)
        if not self._is_set_up:
            self._told_before.append((row, outcome))
            return
        proposals = self._open.get(row)
        self._report(proposals.pop(0) if proposals else None, row, outcome)
