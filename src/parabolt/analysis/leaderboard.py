"""The leaderboard: one line per optimizer and problem."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from parabolt.analysis.intervals import mean_interval, share_interval
from parabolt.analysis.metrics import (
    failed_share,
    final_regret_percent,
    group_runs,
    inference_regret,
    oom_share,
    regret_area,
)
from parabolt.analysis.survival import time_to_optimum
from parabolt.analysis.words import with_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from parabolt.experiments.run import Run

#: Heading and explanation of the leaderboard's columns.
COLUMNS: dict[str, str] = {
    "optimizer": "name of the optimizer",
    "found": "runs that evaluated the optimum, of all; in brackets the 95 % interval of their "
    "share (Wilson). A failed run counts as one that found nothing, unless the report says so",
    "evaluations to it": "Kaplan-Meier median, the initial design included; > budget unless half "
    "of the runs found it",
    "final regret, %": "mean simple regret at the end, in percent of the optimum, with its 95 % "
    "interval (bootstrap); none where all runs end alike, which says nothing of their spread",
    "OOM, %": "share of out-of-memory evaluations after the initial design; beside it, as failed, "
    "that of evaluations that ended for memory or a crash, where the data don't say for which",
    "s/step": "mean time that the optimizer took per evaluation, in seconds",
}


@dataclass(frozen=True)
class Score:
    """An optimizer on a problem, over seeds.

    Attributes:
        problem: Name of the problem.
        optimizer: Label of the optimizer.
        n_runs: Runs that count, one per seed.
        n_failed: How many of them failed, and count as runs that found nothing.
        n_found: Runs that evaluated the optimum.
        found_low: Lower end of the 95 % interval of the share that did (Wilson).
        found_high: Upper end of it.
        n_evaluations: Largest number of evaluations of a run, initial design included.
        median_evaluations_to_optimum: Kaplan-Meier median; inf unless half of the runs found it.
        restricted_mean_evaluations: Mean evaluations to the optimum, up to the longest run.
        final_regret_percent: Mean final simple regret in percent of the optimum.
        final_regret_low_percent: Lower end of its 95 % bootstrap interval; NaN where all runs end
            alike.
        final_regret_high_percent: Upper end of it.
        final_inference_regret_percent: Mean regret of the last recommendation; NaN where nothing
            was recommended.
        regret_area_percent: Mean regret over the evaluations after the initial design.
        oom_share: Mean share of out-of-memory evaluations after the initial design.
        failed_share: The same of evaluations that ended for memory or a crash, where the data don't
            say for which.
        step_time_s: Mean time of the optimizer per evaluation, in seconds.
    """

    problem: str
    optimizer: str
    n_runs: int
    n_failed: int
    n_found: int
    found_low: float
    found_high: float
    n_evaluations: int
    median_evaluations_to_optimum: float
    restricted_mean_evaluations: float
    final_regret_percent: float
    final_regret_low_percent: float
    final_regret_high_percent: float
    final_inference_regret_percent: float
    regret_area_percent: float
    oom_share: float
    failed_share: float
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
        found_text(score),
        f"> {score.n_evaluations}" if math.isinf(to_optimum) else f"{to_optimum:g}",
        _regret_text(score),
        _oom_text(score),
        "-" if math.isnan(score.step_time_s) else f"{score.step_time_s:.2g}",
    ]


def found_text(score: Score) -> str:
    """Such as `8/10 [49, 94] %`, and how many runs failed."""
    failed = f", {score.n_failed} failed" if score.n_failed else ""
    low, high = 100.0 * score.found_low, 100.0 * score.found_high
    return f"{score.n_found}/{score.n_runs} [{low:.0f}, {high:.0f}] %{failed}"


def _oom_text(score: Score) -> str:
    """Such as `3.4`, or `failed 12.0` where it is not known of what."""
    if math.isnan(score.oom_share):
        return "-"
    oom, failed = f"{100.0 * score.oom_share:.1f}", f"failed {100.0 * score.failed_share:.1f}"
    if not score.failed_share:
        return oom
    return f"{oom}, {failed}" if score.oom_share else failed


def _regret_text(score: Score) -> str:
    mean, low, high = (
        score.final_regret_percent,
        score.final_regret_low_percent,
        score.final_regret_high_percent,
    )
    return with_interval(mean, low, high)


def _score(runs: Sequence[Run]) -> Score:
    regrets = np.array([final_regret_percent(run) for run in runs])
    finished = [run for run in runs if not run.is_stand_in]
    found = time_to_optimum(runs)
    low, high = mean_interval(regrets)
    found_low, found_high = share_interval(found.n_found, len(runs))
    return Score(
        problem=runs[0].key.problem,
        optimizer=runs[0].key.optimizer,
        n_runs=len(runs),
        n_failed=len(runs) - len(finished),
        n_found=found.n_found,
        found_low=found_low,
        found_high=found_high,
        n_evaluations=max(len(run) for run in runs),
        median_evaluations_to_optimum=found.median,
        restricted_mean_evaluations=found.restricted_mean,
        final_regret_percent=float(regrets.mean()),
        final_regret_low_percent=low,
        final_regret_high_percent=high,
        final_inference_regret_percent=_recommended_regret(runs),
        regret_area_percent=float(np.mean([regret_area(run) for run in runs])),
        oom_share=_mean_share(oom_share, finished),
        failed_share=_mean_share(failed_share, finished),
        step_time_s=_mean_step_time(finished),
    )


def _mean_share(share: Callable[[Run], float], runs: Sequence[Run]) -> float:
    return float(np.mean([share(run) for run in runs])) if runs else math.nan


def _recommended_regret(runs: Sequence[Run]) -> float:
    """Mean over runs; a run that recommended nothing, such as a failed one, lost the optimum."""
    if all(np.isnan(run.recommended).all() for run in runs):
        return math.nan
    return float(np.mean([100.0 * inference_regret(run)[-1] / run.optimum for run in runs]))


def _mean_step_time(runs: Sequence[Run]) -> float:
    steps = np.concatenate([[], *(run.step_time_s[run.n_initial :] for run in runs)])
    return float(steps.mean()) if len(steps) else math.nan
