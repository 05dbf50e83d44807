"""The leaderboard: one line per optimizer and problem."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from parabolt.analysis.metrics import (
    final_regret_percent,
    group_runs,
    inference_regret,
    oom_share,
    regret_area,
)
from parabolt.analysis.statistics import mean_interval
from parabolt.analysis.survival import time_to_optimum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from parabolt.experiments.run import Run

#: Heading and explanation of the leaderboard's columns.
COLUMNS: dict[str, str] = {
    "optimizer": "name of the optimizer",
    "found": "runs that evaluated the optimum",
    "evaluations to it": "Kaplan-Meier median, the initial design included; > budget unless half "
    "of the runs found it",
    "final regret, %": "mean simple regret at the end, in percent of the optimum, 95 % interval",
    "OOM, %": "share of out-of-memory evaluations after the initial design",
    "s/step": "mean time that the optimizer took per evaluation, in seconds",
}


@dataclass(frozen=True)
class Score:
    """An optimizer on a problem, over seeds.

    Attributes:
        problem: Name of the problem.
        optimizer: Label of the optimizer.
        n_runs: Runs, one per seed.
        n_found: Runs that evaluated the optimum.
        n_evaluations: Largest number of evaluations of a run, initial design included.
        median_evaluations_to_optimum: Kaplan-Meier median; inf unless half of the runs found it.
        restricted_mean_evaluations: Mean evaluations to the optimum, up to the longest run.
        final_regret_percent: Mean final simple regret in percent of the optimum.
        final_regret_low_percent: Lower end of its 95 % bootstrap interval.
        final_regret_high_percent: Upper end of it.
        final_inference_regret_percent: Mean regret of the last recommendation; NaN where nothing
            was recommended.
        regret_area_percent: Mean regret over the evaluations after the initial design.
        oom_share: Mean share of out-of-memory evaluations after the initial design.
        step_time_s: Mean time of the optimizer per evaluation, in seconds.
    """

    problem: str
    optimizer: str
    n_runs: int
    n_found: int
    n_evaluations: int
    median_evaluations_to_optimum: float
    restricted_mean_evaluations: float
    final_regret_percent: float
    final_regret_low_percent: float
    final_regret_high_percent: float
    final_inference_regret_percent: float
    regret_area_percent: float
    oom_share: float
    step_time_s: float


def leaderboard(runs: Sequence[Run]) -> list[Score]:
    """One score per problem and optimizer, best final regret first within a problem."""
    scores = []
    for groups in group_runs(runs).values():
        scores += sorted(
            (_score(group) for group in groups.values()),
            key=lambda s: (s.final_regret_percent, s.restricted_mean_evaluations),
        )
    return scores


def score_as_json(score: Score) -> dict[str, object]:
    """A score with null for what JSON has no number for."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in asdict(score).items()
    }


def score_cells(score: Score) -> list[str]:
    """The texts of one line of the leaderboard, in the order of `COLUMNS`."""
    to_optimum = score.median_evaluations_to_optimum
    return [
        score.optimizer,
        f"{score.n_found}/{score.n_runs}",
        f"> {score.n_evaluations}" if math.isinf(to_optimum) else f"{to_optimum:g}",
        f"{score.final_regret_percent:.2f} "
        f"[{score.final_regret_low_percent:.2f}, {score.final_regret_high_percent:.2f}]",
        f"{100.0 * score.oom_share:.1f}",
        "-" if math.isnan(score.step_time_s) else f"{score.step_time_s:.2g}",
    ]


def _score(runs: Sequence[Run]) -> Score:
    regrets = np.array([final_regret_percent(run) for run in runs])
    found = time_to_optimum(runs)
    low, high = mean_interval(regrets)
    return Score(
        problem=runs[0].key.problem,
        optimizer=runs[0].key.optimizer,
        n_runs=len(runs),
        n_found=found.n_found,
        n_evaluations=max(len(run) for run in runs),
        median_evaluations_to_optimum=found.median,
        restricted_mean_evaluations=found.restricted_mean,
        final_regret_percent=float(regrets.mean()),
        final_regret_low_percent=low,
        final_regret_high_percent=high,
        final_inference_regret_percent=float(np.mean([_last_recommended(run) for run in runs])),
        regret_area_percent=float(np.mean([regret_area(run) for run in runs])),
        oom_share=float(np.mean([oom_share(run) for run in runs])),
        step_time_s=_mean_step_time(runs),
    )


def _last_recommended(run: Run) -> float:
    if np.isnan(run.recommended).all():
        return math.nan
    return float(100.0 * inference_regret(run)[-1] / run.optimum)


def _mean_step_time(runs: Sequence[Run]) -> float:
    steps = np.concatenate([run.step_time_s[run.n_initial :] for run in runs])
    return float(steps.mean()) if len(steps) else math.nan
