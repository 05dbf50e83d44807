"""Intervals and summaries over runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import bootstrap

from parabolt.analysis.metrics import (
    Score,
    evaluations_to_optimum,
    group_runs,
    oom_share,
    simple_regret,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from parabolt.experiments.run import Run
    from parabolt.outcome import FloatArray

_N_RESAMPLES = 10_000


def mean_interval(values: FloatArray, *, confidence: float = 0.95) -> tuple[float, float]:
    """Percentile-bootstrap interval of the mean of values (n,), from a fixed seed.

    With a single value, or all values the same, it is that value: nothing is known of the spread.
    """
    if len(values) == 1 or np.ptp(values) == 0.0:
        return float(values[0]), float(values[0])
    result = bootstrap(
        (values,),
        np.mean,
        confidence_level=confidence,
        n_resamples=_N_RESAMPLES,
        method="percentile",
        rng=np.random.default_rng(0),
    )
    return float(result.confidence_interval.low), float(result.confidence_interval.high)


def leaderboard(runs: Sequence[Run]) -> list[Score]:
    """One score per problem and optimizer, best final regret first within a problem."""
    scores = [_score(group) for group in group_runs(runs).values()]
    problems = list(dict.fromkeys(score.problem for score in scores))
    return sorted(
        scores,
        key=lambda s: (
            problems.index(s.problem),
            s.final_regret_percent,
            s.median_evaluations_to_optimum,
        ),
    )


def _score(runs: Sequence[Run]) -> Score:
    regrets = np.array([100.0 * simple_regret(run)[-1] / run.optimum for run in runs])
    found = [evaluations_to_optimum(run) for run in runs]
    low, high = mean_interval(regrets)
    chosen = [run.step_time_s[run.n_initial :] for run in runs]
    steps = np.concatenate(chosen)
    return Score(
        problem=runs[0].key.problem,
        optimizer=runs[0].key.optimizer,
        n_runs=len(runs),
        n_found=sum(n is not None for n in found),
        n_evaluations=max(len(run) for run in runs),
        median_evaluations_to_optimum=_censored_median(found),
        final_regret_percent=float(regrets.mean()),
        final_regret_low_percent=low,
        final_regret_high_percent=high,
        oom_share=float(np.mean([oom_share(run) for run in runs])),
        step_time_s=float(steps.mean()) if len(steps) else float("nan"),
    )


def _censored_median(found: Sequence[int | None]) -> float:
    """Median of evaluation counts where None stands for more than the budget."""
    ordered = sorted(float("inf") if n is None else float(n) for n in found)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return 0.5 * (low + high)
