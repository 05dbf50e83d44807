"""How a run is set up: initial design, budget, noise and repeats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from parabolt.errors import OptionError

if TYPE_CHECKING:
    from parabolt.optimizers.optimizer import Repeats
    from parabolt.outcome import BoolArray, IntArray

#: Evaluations after the initial design in the published runs.
PUBLISHED_BUDGETS: dict[str, int] = {"pco16": 100, "pco32": 50, "pco64": 100}


@dataclass(frozen=True)
class Protocol:
    """Set-up of a run.

    Attributes:
        n_evaluations: Evaluations after the initial design.
        n_initial: Rows of the initial design; 0 leaves it to the optimizer.
        min_feasible: The design grows until at least this many of its rows are feasible.
        noise_std: Standard deviation of the noise on every told throughput, in iterations/s.
        repeats: Whether an optimizer may propose a candidate again.

    Raises:
        OptionError: For a number outside what is allowed.
    """

    n_evaluations: int
    n_initial: int = 10
    min_feasible: int = 2
    noise_std: float = 0.001
    repeats: Repeats = "allow"

    def __post_init__(self) -> None:
        for name, least in (("n_evaluations", 0), ("n_initial", 0), ("min_feasible", 0)):
            number = getattr(self, name)
            if type(number) is not int or number < least:
                raise OptionError(f"{name}: expected a whole number >= {least}, got {number!r}")

    @classmethod
    def published(cls, instance_name: str) -> Protocol:
        """The protocol of the BoLT runs (arXiv 2605.17000), with its budget for the instance.

        An instance that was not published gets the larger budget, 100.
        """
        return cls(n_evaluations=PUBLISHED_BUDGETS.get(instance_name, 100))

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
        n = len(is_feasible)
        if n < self.n_initial or is_feasible.sum() < self.min_feasible:
            raise OptionError(
                f"expected at least {self.n_initial} candidates, {self.min_feasible} of them "
                f"feasible, got {n} with {is_feasible.sum()} feasible"
            )
        rows = rng.choice(n, size=self.n_initial, replace=False).tolist()
        rest = sorted(set(range(n)) - set(rows))
        rng.shuffle(rest)
        while is_feasible[rows].sum() < self.min_feasible:
            rows.append(rest.pop())
        return np.array(rows, dtype=np.int64)
