"""Intervals, ranks and tests over runs, with scipy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import (
    bootstrap,
    friedmanchisquare,
    mannwhitneyu,
    permutation_test,
    rankdata,
    studentized_range,
    wilcoxon,
)

from parabolt.analysis.metrics import evaluations_to, final_regret_percent, group_runs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from parabolt.experiments.run import Run
    from parabolt.outcome import FloatArray

_N_RESAMPLES = 10_000

#: Up to this many pairs the signed-rank test is exact, ties included.
_MAX_EXACT = 13


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
        batch=max(1, 2_000_000 // len(values)),
    )
    return float(result.confidence_interval.low), float(result.confidence_interval.high)


@dataclass(frozen=True)
class Comparison:
    """Two optimizers on a problem, by final regret.

    Attributes:
        problem: Name of the problem.
        first: One optimizer.
        second: The other.
        wilcoxon_p: Two-sided signed-rank test over the seeds that both ran; 1 if all are equal.
        mann_whitney_p: Two-sided rank-sum test over all runs.
        holm_p: The signed-rank p-value after Holm's correction over the problem's pairs.
        superiority: Probability that a run of `first` ends with less regret than one of `second`,
            ties counting half (Vargha & Delaney 2000).
    """

    problem: str
    first: str
    second: str
    wilcoxon_p: float
    mann_whitney_p: float
    holm_p: float
    superiority: float


def compare_pairs(runs: Sequence[Run]) -> list[Comparison]:
    """All pairs of optimizers, problem by problem."""
    comparisons = []
    for problem, groups in group_runs(runs).items():
        regrets = {
            name: {run.key.seed: final_regret_percent(run) for run in group}
            for name, group in groups.items()
        }
        pairs = list(combinations(regrets, 2))
        paired = [signed_rank_p(regrets[a], regrets[b]) for a, b in pairs]
        for (first, second), p, corrected in zip(pairs, paired, holm(paired), strict=True):
            a, b = (np.array(list(regrets[name].values())) for name in (first, second))
            statistic, rank_sum_p = mannwhitneyu(a, b, alternative="two-sided")
            comparisons.append(
                Comparison(
                    problem=problem,
                    first=first,
                    second=second,
                    wilcoxon_p=p,
                    mann_whitney_p=float(rank_sum_p),
                    holm_p=corrected,
                    superiority=1.0 - float(statistic) / (len(a) * len(b)),
                )
            )
    return comparisons


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction (Holm 1979) of p-values, in their order."""
    order = np.argsort(p_values)
    factors = len(p_values) - np.arange(len(p_values))
    stepped = np.maximum.accumulate(np.asarray(p_values, dtype=np.float64)[order] * factors)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(stepped, 1.0)
    return [float(p) for p in corrected]


def signed_rank_p(first: Mapping[Any, float], second: Mapping[Any, float]) -> float:
    """Two-sided signed-rank test over the blocks that both have, such as seeds; 1 if all tie."""
    seeds = sorted(set(first) & set(second))
    # To 1e-9 %, as a rounding error would part what is tied.
    differences = np.array([first[seed] - second[seed] for seed in seeds]).round(9)
    if len(differences) < 2 or not differences.any():
        return 1.0
    if len(differences) > _MAX_EXACT:
        return float(wilcoxon(differences, zero_method="zsplit").pvalue)
    # What `wilcoxon` does with ties, too, but all signs at once: a hundred times as fast.
    exact = permutation_test(
        (differences,), _signed_rank_sum, permutation_type="samples", vectorized=True,
        n_resamples=2**_MAX_EXACT,
    )  # fmt: skip
    return float(exact.pvalue)


def _signed_rank_sum(differences: FloatArray, axis: int) -> FloatArray:
    """Sum of the signed ranks of absolute differences; zeros count for neither sign."""
    total: FloatArray = (np.sign(differences) * rankdata(np.abs(differences), axis=axis)).sum(axis)
    return total


@dataclass(frozen=True)
class Ranking:
    """Mean ranks over blocks of one problem and one seed, by final regret; 1 is best.

    Attributes:
        mean_ranks: Optimizer to mean rank, best first.
        n_blocks: Blocks that every optimizer ran.
        friedman_p: p-value of Friedman's test; NaN with fewer than three optimizers.
        critical_difference: Nemenyi's at 5 % (Demsar 2006): mean ranks closer than this don't
            differ.
    """

    mean_ranks: dict[str, float]
    n_blocks: int
    friedman_p: float
    critical_difference: float


def rank_optimizers(runs: Sequence[Run]) -> Ranking | None:
    """Mean ranks over all blocks; None with one optimizer, or where no block is complete."""
    names = list(dict.fromkeys(run.key.optimizer for run in runs))
    blocks: dict[tuple[str, int], dict[str, float]] = {}
    for run in runs:
        block = blocks.setdefault((run.key.problem, run.key.seed), {})
        block[run.key.optimizer] = final_regret_percent(run)
    whole = [[block[n] for n in names] for block in blocks.values() if len(block) == len(names)]
    if len(names) < 2 or not whole:
        return None
    regrets = np.array(whole)
    ranks = rankdata(regrets, axis=1).mean(axis=0)
    k, n = len(names), len(regrets)
    q = studentized_range.ppf(0.95, k, math.inf) / math.sqrt(2.0)
    is_tied = bool((np.ptp(regrets, axis=1) == 0.0).all())
    friedman = 1.0 if is_tied else (friedmanchisquare(*regrets.T).pvalue if k > 2 else math.nan)
    return Ranking(
        mean_ranks=dict(sorted(zip(names, ranks.tolist(), strict=True), key=lambda x: x[1])),
        n_blocks=n,
        friedman_p=float(friedman),
        critical_difference=float(q * math.sqrt(k * (k + 1) / (6.0 * n))),
    )


@dataclass(frozen=True, eq=False)
class Profile:
    """A performance profile (Dolan & More 2002).

    Attributes:
        factor: Factors tau >= 1 of the fewest evaluations any optimizer needed, (m,).
        share: Optimizer to the share of blocks that it solved within each factor, (m,).
    """

    factor: FloatArray
    share: dict[str, FloatArray]


def performance_profile(runs: Sequence[Run], *, within: float = 0.01) -> Profile:
    """Share of blocks (problem, seed) solved within a factor of the fewest evaluations.

    Args:
        runs: Runs.
        within: A block is solved within this fraction of the optimum.
    """
    names = list(dict.fromkeys(run.key.optimizer for run in runs))
    columns = {name: i for i, name in enumerate(names)}
    blocks: dict[tuple[str, int], int] = {}
    for run in runs:
        blocks.setdefault((run.key.problem, run.key.seed), len(blocks))
    needed = np.full((len(blocks), len(names)), np.inf)
    for run in runs:
        count = evaluations_to(run, within=within)
        if count is not None:
            block = blocks[run.key.problem, run.key.seed]
            needed[block, columns[run.key.optimizer]] = count
    best = needed.min(axis=1, keepdims=True)
    ratio = np.where(np.isfinite(needed), needed / np.where(np.isfinite(best), best, 1.0), np.inf)
    finite = ratio[np.isfinite(ratio)]
    factor = np.unique(np.append(finite, 1.0))
    share = {name: (ratio[:, [i]] <= factor).mean(axis=0) for i, name in enumerate(names)}
    return Profile(factor, share)
