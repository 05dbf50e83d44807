"""Scores over the problems of a suite, in units that can be averaged over problems.

Regrets are in percent of a problem's optimum, and evaluations are fractions of its candidates.
Every problem counts the same: a score is first averaged over seeds, and then over problems. Tests
take a problem as one block, since seeds of one problem are no independent evidence on the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from parabolt.analysis.comparison import holm
from parabolt.analysis.intervals import mean_interval
from parabolt.analysis.metrics import (
    evaluations_to,
    final_regret_percent,
    group_runs,
    regret_area,
)
from parabolt.analysis.signed_ranks import signed_rank_p

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from parabolt.experiments.run import Run
    from parabolt.outcome import FloatArray

#: Share of the optimum that counts as close to it.
CLOSE = 0.01


@dataclass(frozen=True)
class ProblemScore:
    """An optimizer on one problem of a suite: means over its seeds.

    Attributes:
        problem: The problem.
        optimizer: The optimizer.
        n_runs: Runs.
        regret_percent: Final simple regret in % of the optimum.
        area_percent: Mean simple regret over the evaluations after the initial design, in % of the
            optimum.
        budget_fraction: Evaluations as a fraction of the candidates.
        close_fraction: Evaluations until one is within 1 % of the optimum, as a fraction of the
            candidates; a run in which none is counts with its whole budget.
        n_close: Runs in which one is.
    """

    problem: str
    optimizer: str
    n_runs: int
    regret_percent: float
    area_percent: float
    budget_fraction: float
    close_fraction: float
    n_close: int


@dataclass(frozen=True)
class SuiteScore:
    """An optimizer on a suite: means over problems, of the figures of `ProblemScore`.

    Attributes:
        optimizer: The optimizer.
        n_problems: Problems.
        regret_percent: Final simple regret in %.
        regret_low_percent: Lower end of its 95 % bootstrap interval over problems; NaN where all
            are equal.
        regret_high_percent: Upper end of it.
        area_percent: Anytime area in %.
        budget_fraction: Fraction of the candidates that was evaluated.
        close_fraction: Fraction of the candidates until one is within 1 %.
        close_share: Share of the runs in which one is.
    """

    optimizer: str
    n_problems: int
    regret_percent: float
    regret_low_percent: float
    regret_high_percent: float
    area_percent: float
    budget_fraction: float
    close_fraction: float
    close_share: float


@dataclass(frozen=True)
class SuiteComparison:
    """Two optimizers on the problems that both ran, by final regret.

    Attributes:
        first: One optimizer.
        second: The other.
        n_problems: Problems; each is one block.
        n_first_better: Problems on which `first` ends with less regret.
        wilcoxon_p: Two-sided signed-rank test over problems; 1 if all are equal.
        holm_p: The same after Holm's correction over all pairs.
    """

    first: str
    second: str
    n_problems: int
    n_first_better: int
    wilcoxon_p: float
    holm_p: float


def problem_scores(runs: Sequence[Run], n_candidates: Mapping[str, int]) -> list[ProblemScore]:
    """One score per problem and optimizer.

    Args:
        runs: Runs of any problems.
        n_candidates: Problem to the number of its candidates.
    """
    return [
        _problem_score(problem, optimizer, group, n_candidates[problem])
        for problem, groups in group_runs(runs).items()
        for optimizer, group in groups.items()
    ]


def suite_scores(scores: Sequence[ProblemScore]) -> list[SuiteScore]:
    """One score per optimizer over all problems, least regret first."""
    optimizers = dict.fromkeys(score.optimizer for score in scores)
    found = [_suite_score([s for s in scores if s.optimizer == name]) for name in optimizers]
    return sorted(found, key=lambda score: (score.regret_percent, score.area_percent))


def compare_over_problems(scores: Sequence[ProblemScore]) -> list[SuiteComparison]:
    """All pairs of optimizers, with a problem as the block of the test."""
    regrets: dict[str, dict[str, float]] = {}
    for score in scores:
        regrets.setdefault(score.optimizer, {})[score.problem] = score.regret_percent
    pairs = [(a, b) for a, b in combinations(regrets, 2) if regrets[a].keys() & regrets[b].keys()]
    p_values = [signed_rank_p(_differences(regrets[a], regrets[b])) for a, b in pairs]
    return [
        SuiteComparison(
            first,
            second,
            len(common := regrets[first].keys() & regrets[second].keys()),
            sum(regrets[first][name] < regrets[second][name] for name in common),
            p,
            corrected,
        )
        for (first, second), p, corrected in zip(pairs, p_values, holm(p_values), strict=True)
    ]


def _differences(first: Mapping[str, float], second: Mapping[str, float]) -> FloatArray:
    """Differences over the problems that both have, (n,)."""
    return np.array([first[name] - second[name] for name in first if name in second])


def _problem_score(
    problem: str, optimizer: str, runs: Sequence[Run], n_candidates: int
) -> ProblemScore:
    close = [evaluations_to(run, within=CLOSE) for run in runs]
    until = [len(run) if n is None else n for n, run in zip(close, runs, strict=True)]
    return ProblemScore(
        problem=problem,
        optimizer=optimizer,
        n_runs=len(runs),
        regret_percent=float(np.mean([final_regret_percent(run) for run in runs])),
        area_percent=float(np.mean([regret_area(run) for run in runs])),
        budget_fraction=float(np.mean([len(run) for run in runs])) / n_candidates,
        close_fraction=float(np.mean(until)) / n_candidates,
        n_close=sum(n is not None for n in close),
    )


def _suite_score(scores: Sequence[ProblemScore]) -> SuiteScore:
    regrets = np.array([score.regret_percent for score in scores])
    low, high = mean_interval(regrets)
    return SuiteScore(
        optimizer=scores[0].optimizer,
        n_problems=len(scores),
        regret_percent=float(regrets.mean()),
        regret_low_percent=low,
        regret_high_percent=high,
        area_percent=float(np.mean([score.area_percent for score in scores])),
        budget_fraction=float(np.mean([score.budget_fraction for score in scores])),
        close_fraction=float(np.mean([score.close_fraction for score in scores])),
        close_share=float(np.mean([score.n_close / score.n_runs for score in scores])),
    )
