"""What a run achieved, as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from parabolt.outcome import OOM

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


def evaluations_to_optimum(run: Run) -> int | None:
    """Number of evaluations, initial design included, until the optimum was evaluated.

    None if it never was.
    """
    found = simple_regret(run) <= REGRET_FLOOR
    return int(np.argmax(found)) + 1 if found.any() else None


def inference_regret(run: Run) -> FloatArray:
    """Optimum - noiseless throughput of the recommendation, (t,) in iterations/s.

    An infeasible recommendation, or none at all, costs the whole optimum. NaN in the initial
    design, where nothing is recommended.
    """
    regret = run.optimum - np.nan_to_num(run.recommended, nan=0.0)
    regret[: run.n_initial] = np.nan
    return regret


def oom_share(run: Run) -> float:
    """Share of out-of-memory runs among the evaluations after the initial design; NaN if none."""
    chosen = run.outcomes.status[run.n_initial :]
    return float(np.mean(chosen == OOM)) if len(chosen) else float("nan")


@dataclass(frozen=True)
class Score:
    """One line of the leaderboard: an optimizer on a problem, over seeds.

    Attributes:
        problem: Name of the problem.
        optimizer: Name of the optimizer.
        n_runs: Runs, one per seed.
        n_found: Runs that evaluated the optimum.
        n_evaluations: Largest number of evaluations of a run, initial design included.
        median_evaluations_to_optimum: Median over runs; inf if fewer than half found it.
        final_regret_percent: Mean final simple regret in percent of the optimum.
        final_regret_low_percent: Lower end of its 95 % interval.
        final_regret_high_percent: Upper end of its 95 % interval.
        oom_share: Mean share of out-of-memory evaluations after the initial design.
        step_time_s: Mean time of the optimizer per evaluation, in seconds.
    """

    problem: str
    optimizer: str
    n_runs: int
    n_found: int
    n_evaluations: int
    median_evaluations_to_optimum: float
    final_regret_percent: float
    final_regret_low_percent: float
    final_regret_high_percent: float
    oom_share: float
    step_time_s: float


def group_runs(runs: Sequence[Run]) -> dict[tuple[str, str], list[Run]]:
    """Runs by problem and optimizer, in order of first appearance."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.key.problem, run.key.optimizer), []).append(run)
    return groups
