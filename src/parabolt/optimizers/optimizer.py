"""The ask/tell contract of every optimizer.

An optimizer sees the candidates, the instance and what it is told, nothing else. `ask` proposes
candidates, `tell` reports an outcome (of any candidate, asked or not, also twice), `recommend`
names the candidate to deploy now.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Literal, Self, overload

import numpy as np

from parabolt.errors import CandidatesExhaustedError, OptionError, ProposalError
from parabolt.optimizers.deadline import Deadline
from parabolt.optimizers.history import History
from parabolt.optimizers.observation import check_observation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from parabolt.costmodel.calibration.evidence import Evidence
    from parabolt.instances.search_space import SearchSpace
    from parabolt.outcome import IntArray, Outcome
    from parabolt.space.configuration import Configuration

Repeats = Literal["avoid", "allow"]


class Optimizer(ABC):
    """Base of all optimizers.

    Args:
        space: Instance and candidates.
        seed: Seed, or a generator to draw from.
        rng: Generator to draw from in place of one made from `seed`: a protocol that has drawn the
            initial design goes on with its stream this way.
        repeats: Whether a candidate may be proposed again after it has been asked or told. The
            published protocol allows it.
        history: Trials of other instances. A method may learn from them or not; they are kept in
            `past` as they are given.
        ask_time_limit_s: Time budget of one `ask`, in seconds. When it is over, an optimizer ends
            with what it has: hyper-parameters of the last fit, fewer samples, fewer candidates
            looked at. One pass over the candidates is always made. A limit that strikes makes the
            sequence depend on the machine's speed.

    Attributes:
        past: Trials of other instances, as given; those of this one are in `history`.
        n_failed_fits: Fits of a model that fell back so far, see `gp_fit.fit_gp`.
        last_ask_time_s: Duration of the last `ask`, in seconds; NaN before the first.
        was_shortened: Whether the time limit cut the last `ask` short.

    Raises:
        OptionError: For an option outside what is allowed, or a history with trials of the very
            instance.
    """

    #: Name in the registry.
    name: str
    #: Whether new candidates come before tried ones where repeats are allowed.
    prefers_new: bool = False
    #: Keyword options that it was made with, those of a run left out.
    given_options: Mapping[str, Any] = {}

    def __new__(cls, *_: Any, **options: Any) -> Self:
        """Notes the options, so that a study can make the like for other problems and seeds."""
        made = super().__new__(cls)
        of_the_run = ("space", "seed", "rng", "repeats")
        made.given_options = {k: v for k, v in options.items() if k not in of_the_run}
        return made

    def __init__(
        self,
        space: SearchSpace,
        *,
        seed: int | np.random.Generator = 0,
        rng: np.random.Generator | None = None,
        repeats: Repeats = "avoid",
        history: Sequence[Evidence] = (),
        ask_time_limit_s: float | None = None,
    ) -> None:
        if repeats not in ("avoid", "allow"):
            raise OptionError(f"repeats: expected 'avoid' or 'allow', got {repeats!r}")
        if any(item.instance == space.instance for item in history):
            raise OptionError(
                f"history: expected trials of other instances, got some of {space.instance.name}; "
                "try telling them"
            )
        self.space = space
        self.past = tuple(history)
        self.repeats: Repeats = repeats
        self.seed = None if isinstance(seed, np.random.Generator) else _whole_seed(seed)
        self.rng = _generator(seed, rng)
        self.history = History()
        self.ask_time_limit_s = ask_time_limit_s
        self.n_failed_fits = 0
        self.last_ask_time_s = math.nan
        self.was_shortened = False
        self._deadline = Deadline(ask_time_limit_s)
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
            ProposalError: If the method proposes what is no candidate, or one that it may not.
        """
        if n is not None and (type(n) is not int or n < 1):
            raise OptionError(f"n: expected a positive whole number, got {n!r}")
        self._deadline = Deadline(self.ask_time_limit_s)
        batch = [self._ask_row()]
        while len(batch) < (n or 1) and len(self.available_rows()):
            batch.append(self._ask_row())
        configurations = [self.space.candidates[row] for row in batch]
        self.last_ask_time_s = self._deadline.elapsed_s()
        self.was_shortened = self._deadline.was_hit
        return configurations if n is not None else configurations[0]

    def tell(self, configuration: Configuration, outcome: Outcome) -> None:
        """Reports what a candidate gave.

        Raises:
            InvalidConfigurationError: If a rule rejects the configuration.
            MissingConfigurationError: If it isn't a candidate.
            ObservationError: If the outcome contradicts itself, such as ok without a throughput.
        """
        check_observation(configuration, outcome)
        self._observe(self.space.row(configuration), outcome)

    def recommend(self) -> Configuration | None:
        """The candidate to deploy now; None while no run has finished.

        The best finished run, unless the method knows better.
        """
        self._deadline = Deadline(self.ask_time_limit_s)
        row = self._recommended_row()
        return None if row is None else self.space.candidates[row]

    def available_rows(self) -> IntArray:
        """Rows that may be proposed, ascending."""
        new = np.flatnonzero(~self._is_used)
        if self.repeats == "allow" and not (self.prefers_new and len(new)):
            return np.arange(len(self.space))
        return new

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
        row = self._proposed(self._next_row(available), available)
        self._pending.append(row)
        self._is_used[row] = True
        return row

    def _observe(self, row: int, outcome: Outcome) -> None:
        """Takes in what candidate `row` gave."""
        self.history.add(row, outcome)
        self._is_used[row] = True
        if row in self._pending:
            self._pending.remove(row)

    def _proposed(self, row: object, available: IntArray) -> int:
        """A proposal as a row number, once it is certain that it may be proposed."""
        is_whole = isinstance(row, (int, np.integer)) and not isinstance(row, bool)
        at = np.searchsorted(available, row) if is_whole else len(available)  # type: ignore[call-overload]  # numpy's stubs don't narrow
        if at == len(available) or available[at] != row:
            raise ProposalError(
                f"{type(self).__name__} proposed row {row!r}: expected one of the "
                f"{len(available)} rows of {len(self.space)} that may be proposed "
                f"(repeats: {self.repeats})"
            )
        return int(available[at])

    @abstractmethod
    def _next_row(self, available: IntArray) -> int:
        """The row to try next, one of `available` (ascending, not empty)."""

    def _recommended_row(self) -> int | None:
        return self.history.best_feasible_row()

    def _random_row(self, available: IntArray) -> int:
        return int(available[self.rng.integers(len(available))])


def _whole_seed(seed: int) -> int:
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise OptionError(f"seed: expected a whole number >= 0 or a generator, got {seed!r}")
    return int(seed)


def _generator(
    seed: int | np.random.Generator, rng: np.random.Generator | None
) -> np.random.Generator:
    if rng is not None:
        if not isinstance(rng, np.random.Generator):
            raise OptionError(f"rng: expected a numpy.random.Generator, got {rng!r}")
        return rng
    return seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)
