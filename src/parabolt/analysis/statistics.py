"""All optimizers at once: mean ranks with their critical difference, and performance profiles."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range

from parabolt.analysis.metrics import evaluations_to, final_regret_percent, group_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from parabolt.experiments.run import Run
    from parabolt.outcome import FloatArray


@dataclass(frozen=True)
class Ranking:
    """Mean ranks over seeds, by final regret; 1 is best, ties share their mean rank.

    A block is a seed: its optimizers are ranked by their mean rank over the problems. Problems are
    no further blocks, as a seed draws the designs of all problems from one stream.

    Attributes:
        mean_ranks: Optimizer to mean rank, best first.
        problems: Problems that every optimizer ran.
        n_seeds: Seeds that every optimizer ran on all of them.
        friedman_p: p-value of Friedman's test over the seeds; NaN with fewer than three optimizers.
        critical_difference: Nemenyi's at 5 % (Demsar 2006): mean ranks closer than this don't
            differ.
    """

    mean_ranks: dict[str, float]
    problems: tuple[str, ...]
    n_seeds: int
    friedman_p: float
    critical_difference: float


def rank_optimizers(runs: Sequence[Run]) -> Ranking | None:
    """Mean ranks over the common seeds; None with one optimizer, or where nothing is common."""
    names = list(dict.fromkeys(run.key.optimizer for run in runs))
    problems = {p: groups for p, groups in group_runs(runs).items() if len(groups) == len(names)}
    regrets = {
        (problem, name, run.key.seed): round(final_regret_percent(run), 9)
        for problem, groups in problems.items()
        for name, group in groups.items()
        for run in group
    }
    seeds = [
        seed
        for seed in sorted({seed for _, _, seed in regrets})
        if all((problem, name, seed) in regrets for problem in problems for name in names)
    ]
    if len(names) < 2 or not seeds:
        return None
    table = np.array([[[regrets[p, n, s] for n in names] for p in problems] for s in seeds])
    blocks = rankdata(rankdata(table, axis=2).mean(axis=1), axis=1)  # (seeds, optimizers)
    k, n = len(names), len(seeds)
    q = studentized_range.ppf(0.95, k, math.inf) / math.sqrt(2.0)
    is_tied = bool((np.ptp(blocks, axis=1) == 0.0).all())
    friedman = 1.0 if is_tied else (friedmanchisquare(*blocks.T).pvalue if k > 2 else math.nan)
    ranks = zip(names, blocks.mean(axis=0).tolist(), strict=True)
    return Ranking(
        mean_ranks=dict(sorted(ranks, key=lambda pair: pair[1])),
        problems=tuple(problems),
        n_seeds=n,
        friedman_p=float(friedman),
        critical_difference=float(q * math.sqrt(k * (k + 1) / (6.0 * n))),
    )


@dataclass(frozen=True, eq=False)
class Profile:
    """A performance profile (Dolan & More 2002).

    Attributes:
        factor: Factors tau >= 1 of the fewest evaluations any optimizer needed, (m,).
        share: Optimizer to the share of its runs that came close enough within each factor, (m,).
        within: How close: a fraction of the optimum.
    """

    factor: FloatArray
    share: dict[str, FloatArray]
    within: float


def performance_profile(runs: Sequence[Run], *, within: float = 0.01) -> Profile:
    """Share of runs that came close within a factor of the fewest evaluations on their block.

    A block is a problem and a seed; an optimizer's share is over the blocks that it ran.

    Args:
        runs: Runs.
        within: How close to the optimum, as a fraction of it.
    """
    needed: dict[tuple[str, int], dict[str, float]] = {}
    for run in runs:
        count = evaluations_to(run, within=within)
        block = needed.setdefault((run.key.problem, run.key.seed), {})
        block[run.key.optimizer] = math.inf if count is None else count
    ratios: dict[str, list[float]] = {run.key.optimizer: [] for run in runs}
    for block in needed.values():
        least = min(block.values())
        for name, n in block.items():
            ratios[name].append(n / least if math.isfinite(n) else math.inf)
    finite = [ratio for values in ratios.values() for ratio in values if math.isfinite(ratio)]
    factor = np.unique([1.0, *finite])
    share = {
        name: (np.array(values)[:, None] <= factor).mean(axis=0) for name, values in ratios.items()
    }
    return Profile(factor, share, within)
