"""How a run is set up: initial design, budget, noise, repeats, feedback and workers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from parabolt.errors import OptionError
from parabolt.optimizers.optimizer import Repeats

if TYPE_CHECKING:
    from parabolt.outcome import BoolArray, IntArray

#: Evaluations after the initial design in the published runs.
PUBLISHED_BUDGETS: dict[str, int] = {"pco16": 100, "pco32": 50, "pco64": 100}

Feedback = Literal["imputed", "status", "margin"]
Schedule = Literal["asynchronous", "batch"]
Split = Literal["none", "leave-one-instance-out", "leave-one-model-out", "small-to-large"]

#: Where history comes from if nothing else is said: every published table of GPUs.
HISTORY_POOL: tuple[str, ...] = ("all", "uscale-80b-8", "uscale-80b-16")

#: Field to allowed words, to least whole number, and to least number.
_WORDS: dict[str, tuple[str, ...]] = {
    "repeats": get_args(Repeats),
    "feedback": get_args(Feedback),
    "schedule": get_args(Schedule),
    "history": get_args(Split),
}
_WHOLE = {"n_evaluations": 0, "n_initial": 0, "min_feasible": 0, "workers": 1, "trial_steps": 0}
_NUMBERS = ("noise_std", "trial_startup_s")
_LIMITS = ("run_time_limit_s", "run_memory_limit_gib")


@dataclass(frozen=True)
class Protocol:
    """Set-up of a run.

    Attributes:
        n_evaluations: Evaluations after the initial design.
        n_initial: Rows of the initial design; 0 leaves it to the optimizer.
        min_feasible: The design grows until at least this many of its rows are feasible.
        noise_std: Standard deviation of the noise on every told throughput, in iterations/s.
        repeats: Whether an optimizer may propose a candidate again.
        feedback: What an optimizer is told of a trial that ran out of memory. `imputed`: the mean
            throughput of its nearest feasible rows, and the published margin (the published
            protocol). `margin`: no throughput, and the published margin. `status`: only that it
            failed.
        workers: Trials that run at the same time on the simulated clock.
        schedule: With several workers: `asynchronous` asks for the next trial whenever a worker is
            free, `batch` asks for one trial per worker when all of them are free.
        trial_startup_s: Seconds on the simulated clock before a trial's first step; a trial that
            runs out of memory lasts this long.
        trial_steps: Steps of a trial. Where a table states how long a trial took, that is taken;
            elsewhere it is `trial_startup_s + trial_steps / throughput`.
        history: Which trials of other instances an optimizer is given beforehand, see `transfer`.
            One with an option `history` of its own is given that in its place, such as `[]`.
        history_from: Tables and suites by name or path that `history` is taken from.
        run_time_limit_s: Wall-clock seconds after which a run is ended as failed; None for no
            limit. Like the next, it is no part of a run's identity: it ends a run and does not
            change one.
        run_memory_limit_gib: Memory in GiB that the process of a run may have.

    Raises:
        OptionError: For a value outside what is allowed.
    """

    n_evaluations: int
    n_initial: int = 10
    min_feasible: int = 2
    noise_std: float = 0.001
    repeats: Repeats = "allow"
    feedback: Feedback = "imputed"
    workers: int = 1
    schedule: Schedule = "asynchronous"
    trial_startup_s: float = 120.0
    trial_steps: int = 20
    history: Split = "none"
    history_from: tuple[str, ...] = HISTORY_POOL
    run_time_limit_s: float | None = field(default=None, compare=False)
    run_memory_limit_gib: float | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for name, least in _WHOLE.items():
            number = getattr(self, name)
            if type(number) is not int or number < least:
                raise OptionError(f"{name}: expected a whole number >= {least}, got {number!r}")
        for name, words in _WORDS.items():
            if (word := getattr(self, name)) not in words:
                raise OptionError(f"{name}: expected one of {', '.join(words)}, got {word!r}")
        for name in _NUMBERS:
            if not _is_finite(number := getattr(self, name)) or number < 0:
                raise OptionError(f"{name}: expected a number >= 0, got {number!r}")
            object.__setattr__(self, name, float(number))
        if not _are_texts(self.history_from):
            raise OptionError(
                f"history_from: expected a list of tables and suites, got {self.history_from!r}"
            )
        object.__setattr__(self, "history_from", tuple(self.history_from))
        for name in _LIMITS:
            number = getattr(self, name)
            if number is not None and (not _is_finite(number) or number <= 0):
                raise OptionError(f"{name}: expected a number > 0, got {number!r}")

    @classmethod
    def published(cls, instance_name: str) -> Protocol:
        """The protocol of the BoLT runs (arXiv 2605.17000), with its budget for the instance.

        An instance that was not published gets the larger budget, 100.
        """
        return cls(n_evaluations=PUBLISHED_BUDGETS.get(instance_name, 100))

    def identity(self) -> dict[str, Any]:
        """The fields that distinguish runs of this protocol from others.

        Those of version 0.1 are always there, later ones where they differ from their defaults, so
        that a new field changes no identity of the past.
        """
        return {
            f.name: value
            for number, f in enumerate(fields(self))
            if f.compare and ((value := getattr(self, f.name)) != f.default or number < _N_FIRST)
        }

    def __str__(self) -> str:
        parts = [
            f"{self.n_initial} initial rows, then {self.n_evaluations} evaluations",
            f"noise {self.noise_std:g} iterations/s",
            f"repeats: {self.repeats}",
            f"feedback: {self.feedback}",
        ]
        if self.workers > 1:
            parts.append(f"{self.workers} workers, {self.schedule}")
        if self.history != "none":
            parts.append(f"history: {self.history}")
        return ", ".join(parts)

    def initial_rows(self, is_feasible: BoolArray, rng: np.random.Generator) -> IntArray:
        """Draws the initial design.

        Rows are drawn without replacement; then the remaining row numbers are shuffled, and popped
        from the end onto the design until enough of it is feasible. The draws are the published
        ones, call by call, so the same generator gives the published designs.

        Args:
            is_feasible: Which candidates are feasible (n,).
            rng: Generator; it is left where the published *random* method goes on.

        Returns:
            Row numbers of the design, in the order of evaluation.

        Raises:
            OptionError: If there are fewer candidates, or fewer feasible ones, than asked for.
        """
        self.check_candidates(is_feasible)
        n = len(is_feasible)
        rows = rng.choice(n, size=self.n_initial, replace=False).tolist()
        rest = sorted(set(range(n)) - set(rows))
        rng.shuffle(rest)
        while is_feasible[rows].sum() < self.min_feasible:
            rows.append(rest.pop())
        return np.array(rows, dtype=np.int64)

    def check_candidates(self, is_feasible: BoolArray) -> None:
        """Raises OptionError if there are too few candidates (n,), or too few feasible ones."""
        if len(is_feasible) < self.n_initial or is_feasible.sum() < self.min_feasible:
            raise OptionError(
                f"n_initial, min_feasible: expected at least {self.n_initial} candidates, "
                f"{self.min_feasible} of them feasible, got {len(is_feasible)} with "
                f"{is_feasible.sum()} feasible"
            )


#: Fields that every protocol of version 0.1 had.
_N_FIRST = 5


def _are_texts(value: object) -> bool:
    is_list = isinstance(value, (list, tuple)) and bool(value)
    return is_list and all(isinstance(text, str) for text in value)  # type: ignore[attr-defined]  # it is a list


def _is_finite(number: object) -> bool:
    return type(number) in (int, float) and math.isfinite(number)  # type: ignore[arg-type]  # it is one
