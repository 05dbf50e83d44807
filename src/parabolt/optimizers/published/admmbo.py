"""Bayesian optimization by the alternating direction method of multipliers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.optimizers.choice import TIE, first_best
from parabolt.optimizers.gp.acquisition import log_expected_improvement
from parabolt.optimizers.published.admm import (
    PENALTY,
    RHO,
    AdmmState,
    augmented,
    best_in_data,
    feasibility_improvement,
    objective_range,
)
from parabolt.optimizers.published.surrogate_optimizer import SurrogateOptimizer

if TYPE_CHECKING:
    from parabolt.instances.search_space import SearchSpace
    from parabolt.optimizers.gp.surrogate import Surrogate
    from parabolt.outcome import BoolArray, FloatArray, IntArray


class ADMMBO(SurrogateOptimizer):
    """ADMMBO (Ariafar et al. 2019), on a finite set and with coupled evaluations.

    Splits the problem into the objective's copy x and the constraint's copy z of the configuration,
    held together by (rho/2) |x - z + u|^2: OPT minimises f plus the quadratic by EI, FEAS
    minimises M 1[infeasible] plus the quadratic by the EI of a two-valued quantity, then the dual
    takes its step. rho = 0.1 and M = 20 times the observed range of the objective; ten queries in
    each subproblem of the opening sweep, then two. A subproblem is solved by the best observation.

    Choices: distances are in the unit cube; the copies start at the best feasible observation, or
    where there is none at the first candidate; every observation reveals objective and constraint;
    where FEAS expects no improvement anywhere, the least expected value M p + quadratic is tried;
    the paper's stopping rule isn't used.
    """

    name = "admmbo"

    def __init__(self, space: SearchSpace, **options: Any) -> None:
        super().__init__(space, **options)
        self._state: AdmmState | None = None

    def _choose(self, surrogate: Surrogate, available: IntArray) -> int:
        X, f, is_feasible = self._data()
        scale = objective_range(f)
        if self._state is None:
            best = self.history.best_feasible_row()
            self._state = AdmmState.at(self._inputs[0 if best is None else best])
        if self._state.n_left == 0 and len(X):
            at = best_in_data(self._state, X, f, is_feasible, scale)
            self._state = self._state.solved(X[at])
        observed = augmented(self._state, X, f, is_feasible, scale)
        value = self._value(surrogate, self._state, observed[np.isfinite(observed)], scale)
        unit = float(self._state.subproblem == "objective")  # that value is a logarithm
        self._state = self._state.queried()
        return int(available[first_best(value[available], unit=unit)])

    def _data(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Inputs (n, d), minus throughput (n,) and feasibility (n,) of what was observed."""
        history = self.history
        counts = history.is_informative
        X = self._inputs[history.rows[counts]]
        return X, -history.throughput[counts], history.is_timed[counts]

    def _value(
        self, surrogate: Surrogate, state: AdmmState, observed: FloatArray, scale: float
    ) -> FloatArray:
        """Value of trying each candidate (N,), given the finite augmented values observed."""
        quadratic = state.quadratic(self._inputs, RHO * scale)
        if state.subproblem == "objective":
            mean = surrogate.mean - quadratic  # maximised here
            best = -float(observed.min()) if len(observed) else float(mean.max())
            return log_expected_improvement(mean, surrogate.std, best)
        p_infeasible = -np.expm1(surrogate.log_feasible)
        expected = PENALTY * scale * p_infeasible + quadratic
        best = float(observed.min()) if len(observed) else float(expected.min())
        value = feasibility_improvement(p_infeasible, quadratic, best, PENALTY * scale)
        return value if value.max() > TIE * best else -expected


class ADMMBOWithPrior(ADMMBO):
    """ADMMBO whose GPs have the analytic means of `prior_mean`."""

    name = "admmbo+prior"
    uses_prior_mean = True
