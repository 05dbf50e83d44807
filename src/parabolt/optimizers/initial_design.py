"""Base of the optimizers that need a few random observations before their model says anything."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from parabolt.errors import OptionError
from parabolt.optimizers.optimizer import Optimizer

if TYPE_CHECKING:
    from parabolt.instances.search_space import SearchSpace
    from parabolt.outcome import IntArray


#: Size of the initial design if nothing else is asked for (published protocol). Of a smaller
#: candidate set, all are proposed at random.
N_INITIAL = 10


class DesignedOptimizer(Optimizer):
    """Proposes at random until `n_initial` observations are told or pending, then asks its model.

    An initial design that the caller tells, as the published protocol does, counts.

    Args:
        space: Instance and candidates.
        n_initial: Size of the initial design, at most the number of candidates.
        **options: `seed` and `repeats`, see `Optimizer`.
    """

    def __init__(self, space: SearchSpace, *, n_initial: int = N_INITIAL, **options: Any) -> None:
        super().__init__(space, **options)
        if type(n_initial) is not int or n_initial < 1:
            raise OptionError(f"n_initial: expected a positive whole number, got {n_initial!r}")
        if n_initial > max(len(space), N_INITIAL):
            raise OptionError(
                f"n_initial: expected at most the {len(space)} candidates of "
                f"{space.instance.name}, got {n_initial}"
            )
        self.n_initial = n_initial

    def _next_row(self, available: IntArray) -> int:
        if len(available) == 1:  # nothing to choose, and no knob to model where it is the only one
            return int(available[0])
        if len(self.history) + len(self._pending) < self.n_initial:
            return self._random_row(available)
        return self._model_row(available)

    @abstractmethod
    def _model_row(self, available: IntArray) -> int:
        """The row that the model would try next, one of `available` (ascending, not empty)."""
