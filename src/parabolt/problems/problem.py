"""The contract of a problem, and the base of wrappers that change one thing about another.

A problem is a black box over a finite candidate set, to be maximised. Its public methods check
what they are given; a subclass only answers row numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from parabolt.space.configuration import Configuration

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from parabolt.instances.search_space import SearchSpace
    from parabolt.instances.specs import Instance
    from parabolt.outcome import IntArray, Outcome, Outcomes
    from parabolt.space.knobs import Knob


@dataclass(frozen=True)
class Optimum:
    """The best feasible candidate.

    Attributes:
        value: Its noiseless throughput in iterations/s.
        configuration: The candidate; the first in row order, should several tie.
        provenance: Where the value comes from, in words.
    """

    value: float
    configuration: Configuration
    provenance: str


class Problem(ABC):
    """A black box over the candidates of an instance: configuration in, outcome out."""

    #: Throughput is maximised.
    direction: Literal["maximize"] = "maximize"

    name: str
    #: Version of the data, as its publisher states it.
    version: str
    #: SHA-256 of the data.
    content_hash: str
    #: Instance and candidates: all that an optimizer may know.
    space: SearchSpace
    optimum: Optimum

    @property
    def instance(self) -> Instance:
        """The model, cluster and workload."""
        return self.space.instance

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """The searched knobs, in the order of the columns of `space.encoded`."""
        return self.instance.encoding.knobs

    def evaluate(self, x: Configuration | npt.ArrayLike) -> Outcome:
        """The outcome of one configuration, or of one encoded row (d,).

        Raises:
            InvalidConfigurationError: If a rule rejects it, with the rule's reason.
            MissingConfigurationError: If it is valid but not a candidate.
        """
        if isinstance(x, Configuration):
            return self._evaluate_row(self.space.row(x))
        return self._evaluate_row(int(self._rows(np.asarray(x)[None])[0]))

    def evaluate_many(self, X: npt.ArrayLike | Sequence[Configuration]) -> Outcomes:
        """The outcomes of n configurations, or of encoded rows (n, d), in that order.

        Raises:
            InvalidConfigurationError: If a rule rejects one of them, with the rule's reason.
            MissingConfigurationError: If one is valid but not a candidate.
        """
        return self._evaluate_rows(self._rows(X))

    def _rows(self, X: npt.ArrayLike | Sequence[Configuration]) -> IntArray:
        return self.space.rows(X)

    def _evaluate_row(self, row: int) -> Outcome:
        return self._evaluate_rows(np.array([row]))[0]

    @abstractmethod
    def _evaluate_rows(self, rows: IntArray) -> Outcomes:
        """Outcomes of candidates by row number (n,)."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Problem) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[object, ...]:
        return type(self), self.instance, self.version, self.content_hash

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} {self.version}, {len(self.space)} candidates>"


class ProblemWrapper(Problem):
    """A problem that changes one thing about another and leaves the rest as it is."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.name = problem.name
        self.version = problem.version
        self.content_hash = problem.content_hash
        self.space = problem.space
        self.optimum = problem.optimum

    def _rows(self, X: npt.ArrayLike | Sequence[Configuration]) -> IntArray:
        return self.problem._rows(X)  # a wrapper below may accept more than candidates

    def _evaluate_rows(self, rows: IntArray) -> Outcomes:
        return self.problem._evaluate_rows(rows)

    def _identity(self) -> tuple[object, ...]:
        return type(self), self.problem._identity()
