"""The published pair of surrogates: one GP for throughput, one for the memory margin.

Both are independent exact GPs on bounds-normalised inputs and standardised outputs: the objective
on all observations that carry a throughput (imputed ones included, where the protocol gives them),
the constraint on the margin (feasible where <= 0).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from parabolt.optimizers.gp.acquisition import log_probability_feasible

if TYPE_CHECKING:
    from parabolt.optimizers.gp.gp import GaussianProcess
    from parabolt.outcome import FloatArray, IntArray


@dataclass(frozen=True)
class Model:
    """A GP, and the candidates that its observations are of.

    Attributes:
        gp: The posterior.
        rows: Candidate of each observation (n,).
    """

    gp: GaussianProcess
    rows: IntArray

    def fantasize(self, candidates: FloatArray, rows: IntArray, y: FloatArray) -> Model:
        """The model after targets y (k,) at candidates `rows` (k,)."""
        return Model(self.gp.condition_on(candidates[rows], y), np.append(self.rows, rows))


class Surrogate:
    """Posteriors of throughput and margin at all candidates.

    Args:
        candidates: Inputs (N, d) in the unit cube.
        objective: Model of throughput, or None where no throughput was told.
        constraint: Model of the memory margin, or None where no margin was told.

    Attributes:
        mean: Posterior mean of throughput (N,).
        std: Its standard deviation (N,).
        margin_mean: Posterior mean of the margin (N,).
        margin_std: Its standard deviation (N,).
        log_feasible: Log probability of a margin <= 0 (N,).
    """

    def __init__(
        self, candidates: FloatArray, objective: Model | None, constraint: Model | None
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
        at = np.array(rows, dtype=np.int64)
        X, objective, constraint = self.candidates, self.objective, self.constraint
        return Surrogate(
            X,
            objective and objective.fantasize(X, at, self.mean[at]),
            constraint and constraint.fantasize(X, at, self.margin_mean[at]),
        )


def _predict(model: Model | None, X: FloatArray) -> tuple[FloatArray, FloatArray]:
    return (np.zeros(len(X)), np.ones(len(X))) if model is None else model.gp.predict(X)
