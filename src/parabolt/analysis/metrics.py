"""What a run achieved, as numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parabolt.outcome import FAILED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from parabolt.experiments.run import Run
    from parabolt.outcome import FloatArray

#: Regrets of at most this many iterations/s count as none (published clipping of log regret).
REGRET_FLOOR = 1e-8


def simple_regret(run: Run) -> FloatArray:
    """Optimum - best noiseless feasible throughput so far, floored at 0; (t,) in iterations/s.

    Before anything feasible it is the whole optimum. The initial design is included, infeasible
    evaluations never count as progress (published protocol).
    """
    values = np.where(run.outcomes.is_feasible, run.outcomes.throughput, 0.0)
    regret: FloatArray = np.maximum(run.optimum - np.maximum.accumulate(values), 0.0)
    return regret


def inference_regret(run: Run) -> FloatArray:
    """Optimum - noiseless throughput of the recommendation, (t,) in iterations/s.

    An infeasible recommendation, or none at all, costs the whole optimum. NaN in the initial
    design, where nothing is recommended.
    """
    regret = run.optimum - np.nan_to_num(run.recommended, nan=0.0)
    regret[: run.n_initial] = np.nan
    return regret


def evaluations_to(run: Run, *, within: float = 0.0) -> int | None:
    """Number of evaluations, initial design included, until one came close to the optimum.

    Args:
        run: The run.
        within: How close, as a fraction of the optimum; 0 asks for the optimum itself.

    Returns:
        The number, or None if none did.
    """
    found = simple_regret(run) <= max(within * run.optimum, REGRET_FLOOR)
    return int(np.argmax(found)) + 1 if found.any() else None


def regret_area(run: Run) -> float:
    """Mean simple regret over the evaluations after the initial design, in % of the optimum.

    This is the area under the regret curve per evaluation; NaN without such evaluations.
    """
    regret = simple_regret(run)[run.n_initial :]
    return float(100.0 * regret.mean() / run.optimum) if len(regret) else float("nan")


def oom_share(run: Run) -> float:
    """Share of out-of-memory runs among the evaluations after the initial design; NaN if none."""
    chosen = run.outcomes.is_oom[run.n_initial :]
    return float(np.mean(chosen)) if len(chosen) else float("nan")


def failed_share(run: Run) -> float:
    """The same share of runs that failed for memory or a crash, where it is not known for which."""
    chosen = run.outcomes.status[run.n_initial :] == FAILED
    return float(np.mean(chosen)) if len(chosen) else float("nan")


def final_regret_percent(run: Run) -> float:
    """Simple regret at the end, in percent of the optimum."""
    return float(100.0 * simple_regret(run)[-1] / run.optimum)


def group_runs(runs: Sequence[Run]) -> dict[str, dict[str, list[Run]]]:
    """Runs by problem, then by optimizer, in order of first appearance."""
    groups: dict[str, dict[str, list[Run]]] = {}
    for run in runs:
        groups.setdefault(run.key.problem, {}).setdefault(run.key.optimizer, []).append(run)
    return groups
