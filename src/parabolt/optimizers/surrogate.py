"""The published pair of surrogates: one GP for throughput, one for the memory margin.

Both are independent exact GPs on bounds-normalised inputs and standardised outputs: the objective
on all observations that carry a throughput (imputed ones included, where the protocol gives them),
the constraint on the margin (feasible where <= 0).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.optimizers.acquisition import log_probability_feasible
from parabolt.optimizers.gp import GaussianProcess, fit_gp
from parabolt.optimizers.initial_design import DesignedOptimizer

if TYPE_CHECKING:
    from parabolt.instances.search_space import SearchSpace
    from parabolt.optimizers.history import History
    from parabolt.outcome import BoolArray, FloatArray, IntArray

#: A recommendation must be feasible with at least this probability (published protocol).
_RECOMMEND_PROBABILITY = 0.95


class Surrogate:
    """Posteriors of throughput and margin at all candidates, each (N,).

    Args:
        candidates: Inputs (N, d) in the unit cube.
        objective: GP of throughput, or None where no throughput was told.
        constraint: GP of the memory margin, or None where no margin was told.
    """

    def __init__(
        self,
        candidates: FloatArray,
        objective: GaussianProcess | None,
        constraint: GaussianProcess | None,
    ) -> None:
        self.candidates = candidates
        self.objective = objective
        self.constraint = constraint
        self.mean, self.std = _predict(objective, candidates)
        self.margin_mean, self.margin_std = _predict(constraint, candidates)
        self.log_feasible = (
            np.zeros(len(candidates))
            if constraint is None
            else log_probability_feasible(self.margin_mean, self.margin_std)
        )

    def fantasize(self, rows: tuple[int, ...]) -> Surrogate:
        """The posteriors as if candidates `rows` had given exactly what is expected of them."""
        at = list(rows)
        X = self.candidates[at]
        objective = self.objective and self.objective.condition_on(X, self.mean[at])
        constraint = self.constraint and self.constraint.condition_on(X, self.margin_mean[at])
        return Surrogate(self.candidates, objective, constraint)


def _predict(gp: GaussianProcess | None, X: FloatArray) -> tuple[FloatArray, FloatArray]:
    return (np.zeros(len(X)), np.ones(len(X))) if gp is None else gp.predict(X)


class SurrogateOptimizer(DesignedOptimizer):
    """Base of the published GP methods: an own initial design, then an acquisition.

    Pending proposals are handled as fantasies at the posterior mean. The recommendation is the
    published one: the largest posterior mean among candidates that are feasible with probability
    >= 0.95, else the best feasible observation. The arguments are those of `DesignedOptimizer`.

    Attributes:
        n_failed_fits: How many GP fits fell back to the prior's mode so far.
    """

    def __init__(self, space: SearchSpace, **options: Any) -> None:
        super().__init__(space, **options)
        self.n_failed_fits = 0
        lower, upper = space.instance.encoding.bounds
        self._inputs = (space.encoded - lower) / (upper - lower)
        self._fitted: Surrogate | None = None
        self._n_fitted = 0

    def surrogate(self) -> Surrogate:
        """The posteriors, given everything told so far."""
        history = self.history
        if self._fitted is None or self._n_fitted != len(history):
            counts = history.is_informative
            self._n_fitted = len(history)
            self._fitted = Surrogate(
                self._inputs,
                self._fit(history, history.throughput, counts),
                self._fit(history, history.memory_margin, counts),
            )
        return self._fitted

    @abstractmethod
    def _acquisition(self, surrogate: Surrogate) -> FloatArray:
        """Value of trying each candidate, (N,); the largest is tried."""

    def _model_row(self, available: IntArray) -> int:
        surrogate = self.surrogate()
        if self._pending:
            surrogate = surrogate.fantasize(self.pending_rows)
        return int(available[np.argmax(self._acquisition(surrogate)[available])])

    def _fit(
        self, history: History, values: FloatArray, counts: BoolArray
    ) -> GaussianProcess | None:
        known = counts & np.isfinite(values)
        if not known.any():
            return None
        gp, succeeded = fit_gp(self._inputs[history.rows[known]], values[known])
        self.n_failed_fits += not succeeded
        return gp

    def _recommended_row(self) -> int | None:
        best = self.history.best_feasible_row()
        if best is None:
            return None
        surrogate = self.surrogate()
        safe = surrogate.log_feasible >= np.log(_RECOMMEND_PROBABILITY)
        if surrogate.constraint is None or not safe.any():
            return best
        return int(np.argmax(np.where(safe, surrogate.mean, -np.inf)))
