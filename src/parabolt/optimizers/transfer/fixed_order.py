"""Base of the optimizers that try candidates in an order which history alone decides."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.optimizers.optimizer import Optimizer

if TYPE_CHECKING:
    from parabolt.instances.search_space import SearchSpace
    from parabolt.outcome import IntArray


class FixedOrderOptimizer(Optimizer):
    """Proposes rows in an order fixed at the start, then at random what the order lacks.

    What is told changes nothing but the recommendation. Without a history all is random.

    Args:
        space: Instance and candidates.
        **options: See `Optimizer`.
    """

    # An order says nothing of when to try a candidate again.
    prefers_new = True

    def __init__(self, space: SearchSpace, **options: Any) -> None:
        super().__init__(space, **options)
        self._order = self._ordered_rows() if self.past else np.zeros(0, dtype=np.int64)

    @abstractmethod
    def _ordered_rows(self) -> IntArray:
        """Distinct rows, the most promising first; not all need be there."""

    def _next_row(self, available: IntArray) -> int:
        left = self._order[np.isin(self._order, available)]
        return int(left[0]) if len(left) else self._random_row(available)
