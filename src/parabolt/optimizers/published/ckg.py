"""Constrained knowledge gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parabolt.optimizers.choice import first_best
from parabolt.optimizers.published.knowledge_gradient import (
    Lookahead,
    contenders,
    knowledge_gradient,
)
from parabolt.optimizers.published.surrogate_optimizer import SurrogateOptimizer

if TYPE_CHECKING:
    from parabolt.optimizers.gp.surrogate import Model, Surrogate
    from parabolt.outcome import FloatArray, IntArray

#: Gains this close to the largest are ties, in standard deviations of the throughput observed
#: (published: 1e-12 iterations/s).
_TIE = 1e-11
#: Candidates that are scored at most, and candidates that a recommendation may name at most.
_MAX_SCORED, _MAX_INNER = 2048, 1024


class CKG(SurrogateOptimizer):
    """cKG (Ungredda & Branke 2021): expected gain in throughput mean times P(feasible).

    9 quantiles of the throughput's and 5 of the margin's outcome, 2 candidates per outcome, ties
    broken at random (published). Choices where the paper has a continuous domain: every candidate
    is scored, and the best under an outcome is exact. Candidates that cannot be best under any
    outcome are left out, which changes nothing; only where more than 1,024 are left, those with the
    1,024 largest means times P(feasible) are kept, and of more than 2,048 candidates only the
    2,048 with the largest log EIC are scored. While no throughput is known, P(feasible) counts.

    Attributes:
        n_tied: How many candidates shared the largest gain at the last proposal.
    """

    name = "ckg"
    n_tied = 1

    def _choose(self, surrogate: Surrogate, available: IntArray) -> int:
        if surrogate.objective is None:
            return int(available[first_best(surrogate.log_feasible[available], unit=1.0)])
        rows = self._shortlist(surrogate, available, _MAX_SCORED)
        inner, recommended = self._inner_rows(surrogate)
        gain = knowledge_gradient(
            self._lookahead(surrogate.objective, rows, inner),
            self._lookahead(surrogate.constraint, rows, inner),
            recommended,
            self._deadline,
        )
        tie = _TIE * surrogate.objective.gp.standardization.scale
        tied = np.flatnonzero(gain >= gain.max() - tie)
        self.n_tied = len(tied)
        return int(rows[self.rng.choice(tied)])

    def _inner_rows(self, surrogate: Surrogate) -> tuple[IntArray, int]:
        """Candidates that a recommendation may name, and the index of today's among them."""
        value = surrogate.mean * np.exp(surrogate.log_feasible)
        rows = contenders(
            surrogate.mean, surrogate.std, surrogate.margin_mean, surrogate.margin_std
        )
        if len(rows) > _MAX_INNER:
            rows = rows[np.argpartition(-value[rows], _MAX_INNER - 1)[:_MAX_INNER]]
        rows = np.union1d(rows, [np.argmax(value)])
        return rows, int(np.searchsorted(rows, np.argmax(value)))

    def _lookahead(self, model: Model | None, rows: IntArray, inner: IntArray) -> Lookahead:
        if model is None:  # no margin was ever told: every run fits
            certain: FloatArray = np.full(len(inner), -1.0)
            return Lookahead(certain, np.zeros(len(inner)), np.zeros((len(rows), len(inner))))
        return Lookahead.of(model.gp, self._inputs[rows], self._inputs[inner])


class CKGWithPrior(CKG):
    """cKG whose GPs have the analytic means of `prior_mean`."""

    name = "ckg+prior"
    uses_prior_mean = True
