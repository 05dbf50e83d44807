"""The alternation of ADMMBO, as values: who holds which copy, and for how many queries more.

Symbols, in the unit cube (d,): x is the objective's copy of the configuration, z the constraint's,
u the scaled dual. ADMM minimises, so f stands for minus the throughput.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from parabolt.optimizers.choice import first_best

if TYPE_CHECKING:
    from parabolt.outcome import BoolArray, FloatArray

#: Weight of the quadratic, and penalty of an infeasible point, in units of the objective's range
#: (Ariafar et al. 2019, section 5.1, and proposition 1 for the unit).
RHO, PENALTY = 0.1, 20.0
#: Queries of each subproblem of the opening sweep, and of the later ones.
FIRST_QUERIES, QUERIES = 10, 2


@dataclass(frozen=True)
class AdmmState:
    """Where the alternation stands.

    Attributes:
        x: Objective's copy (d,).
        z: Constraint's copy (d,).
        u: Scaled dual (d,).
        subproblem: The one in progress: `objective` (OPT) or `constraint` (FEAS).
        n_left: Queries it has left.
        is_first_sweep: Whether the opening sweep is still on.
    """

    x: FloatArray
    z: FloatArray
    u: FloatArray
    subproblem: Literal["objective", "constraint"] = "objective"
    n_left: int = FIRST_QUERIES
    is_first_sweep: bool = True

    @classmethod
    def at(cls, start: FloatArray) -> AdmmState:
        """Both copies at `start` (d,), the dual at zero."""
        return cls(start, start, np.zeros_like(start))

    def quadratic(self, X: FloatArray, rho: float) -> FloatArray:
        """(rho/2) |x - z + u|^2 (N,) at values X (N, d) of the copy that is being solved for."""
        anchor = self.z - self.u if self.subproblem == "objective" else self.x + self.u
        return np.asarray(0.5 * rho * ((X - anchor) ** 2).sum(axis=1))

    def solved(self, solution: FloatArray) -> AdmmState:
        """The state after the subproblem in progress was solved by `solution` (d,).

        After the constraint's, the dual takes its step u + x - z and a sweep is over.
        """
        if self.subproblem == "objective":
            n_left = FIRST_QUERIES if self.is_first_sweep else QUERIES
            return replace(self, x=solution, subproblem="constraint", n_left=n_left)
        u = self.u + self.x - solution
        return AdmmState(self.x, solution, u, "objective", QUERIES, is_first_sweep=False)

    def queried(self) -> AdmmState:
        """The state after one query."""
        return replace(self, n_left=self.n_left - 1)


def feasibility_improvement(
    p_infeasible: FloatArray, quadratic: FloatArray, best: float, penalty: float
) -> FloatArray:
    """EI of the two-valued FEAS objective penalty 1[infeasible] + quadratic (paper, eq. 13).

    Args:
        p_infeasible: Probability of infeasibility (N,).
        quadratic: Quadratic term (N,).
        best: Least value observed.
        penalty: M.
    """
    gap = best - quadratic
    return (1.0 - p_infeasible) * np.maximum(gap, 0.0) + p_infeasible * np.maximum(
        gap - penalty, 0.0
    )


def objective_range(f: FloatArray) -> float:
    """Range of the finite f (n,); 1 where it has none."""
    known = f[np.isfinite(f)]
    spread = float(np.ptp(known)) if len(known) > 1 else 0.0
    return spread if spread > 0.0 else 1.0


def best_in_data(
    state: AdmmState, X: FloatArray, f: FloatArray, is_feasible: BoolArray, scale: float
) -> int:
    """Index of the observation that solves the subproblem in progress (paper, line 10).

    Args:
        state: The state.
        X: Observed inputs (n, d).
        f: Observed objective (n,), NaN where there is none.
        is_feasible: Which ran (n,).
        scale: Range of the objective.
    """
    return first_best(-augmented(state, X, f, is_feasible, scale))


def augmented(
    state: AdmmState, X: FloatArray, f: FloatArray, is_feasible: BoolArray, scale: float
) -> FloatArray:
    """The observed values (n,) of what the subproblem in progress minimises; inf where unknown."""
    quadratic = state.quadratic(X, RHO * scale)
    own = f if state.subproblem == "objective" else np.where(is_feasible, 0.0, PENALTY * scale)
    return np.where(np.isnan(own), np.inf, own + quadratic)
