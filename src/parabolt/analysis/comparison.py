"""Optimizers compared two by two, by final regret and paired by seed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import mannwhitneyu

from parabolt.analysis.metrics import final_regret_percent, group_runs
from parabolt.analysis.signed_ranks import signed_rank_p, smallest_p
from parabolt.errors import UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from parabolt.experiments.run import Run

#: What stands for the problem where a comparison is over all of them.
ALL_PROBLEMS = "all problems"

#: Final regrets closer than this, in percent of the optimum, are a tie.
TIE_PERCENT = 1e-9


@dataclass(frozen=True)
class Comparison:
    """Two optimizers on a problem, by final regret.

    Attributes:
        problem: Name of the problem, or `ALL_PROBLEMS`.
        first: One optimizer.
        second: The other.
        n_seeds: Seeds that both ran: the blocks of the test.
        n_better: Runs, paired by seed, in which `first` ends with less regret.
        n_tied: Pairs that end with the same regret.
        n_worse: Pairs in which `second` ends with less regret.
        superiority: Probability that a run of `first` ends with less regret than one of `second`,
            ties counting half (Vargha & Delaney 2000); NaN over all problems.
        signed_rank_p: Two-sided signed-rank test over the seeds, see `signed_rank_p`; 1 if all tie.
        holm_p: That p-value after Holm's correction over the comparisons of the problem.
        smallest_holm_p: The smallest that `holm_p` could be with so many seeds and comparisons.
        mann_whitney_p: Two-sided rank-sum test over all runs, unpaired; NaN over all problems.
    """

    problem: str
    first: str
    second: str
    n_seeds: int
    n_better: int
    n_tied: int
    n_worse: int
    superiority: float
    signed_rank_p: float
    holm_p: float
    smallest_holm_p: float
    mann_whitney_p: float


_Regrets = dict[str, dict[str, dict[int, float]]]


def compare_pairs(runs: Sequence[Run]) -> list[Comparison]:
    """All pairs of optimizers, problem by problem; Holm's correction is over a problem's pairs."""
    comparisons = []
    for problem, regrets in _final_regrets(runs).items():
        pairs = combinations(regrets, 2)
        comparisons += _corrected([_compare(problem, a, b, regrets) for a, b in pairs])
    return comparisons


def compare_with(runs: Sequence[Run], reference: str) -> list[Comparison]:
    """Each optimizer with one, which is `first`, problem by problem and over all problems.

    Holm's correction is over the m - 1 comparisons of a problem with m optimizers. Over several
    problems the blocks are the seeds: a seed draws the designs of every problem from one stream, so
    its runs on two problems are not independent.

    Raises:
        UnknownNameError: If no run is of the reference.
    """
    found = _final_regrets(runs)
    names = list(dict.fromkeys(name for regrets in found.values() for name in regrets))
    if reference not in names:
        raise UnknownNameError.of("optimizer to compare with", reference, names)
    found = {problem: regrets for problem, regrets in found.items() if reference in regrets}
    comparisons = []
    for problem, regrets in found.items():
        others = [name for name in regrets if name != reference]
        comparisons += _corrected([_compare(problem, reference, o, regrets) for o in others])
    if len(found) > 1:
        everywhere = [
            name for name in names if name != reference and all(name in r for r in found.values())
        ]
        overall = [_compare_everywhere(reference, other, found) for other in everywhere]
        comparisons += _corrected([comparison for comparison in overall if comparison.n_seeds])
    return comparisons


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction (Holm 1979) of p-values, in their order."""
    order = np.argsort(p_values)
    factors = len(p_values) - np.arange(len(p_values))
    stepped = np.maximum.accumulate(np.asarray(p_values, dtype=np.float64)[order] * factors)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(stepped, 1.0)
    return [float(p) for p in corrected]


def _final_regrets(runs: Sequence[Run]) -> _Regrets:
    """Problem to optimizer to seed to final regret, in percent."""
    return {
        problem: {
            name: {run.key.seed: final_regret_percent(run) for run in group}
            for name, group in groups.items()
        }
        for problem, groups in group_runs(runs).items()
    }


def _compare(
    problem: str, first: str, second: str, regrets: dict[str, dict[int, float]]
) -> Comparison:
    seeds = sorted(set(regrets[first]) & set(regrets[second]))
    differences = np.array([regrets[first][s] - regrets[second][s] for s in seeds])
    a, b = (np.array(list(regrets[name].values())).round(9) for name in (first, second))
    statistic, rank_sum_p = mannwhitneyu(a, b, alternative="two-sided")
    return _comparison(
        problem, first, second, differences[:, None],
        superiority=1.0 - float(statistic) / (len(a) * len(b)),
        mann_whitney_p=float(rank_sum_p),
    )  # fmt: skip


def _compare_everywhere(first: str, second: str, found: _Regrets) -> Comparison:
    seeds = sorted(
        set.intersection(*({*r[first]} & {*r[second]} for r in found.values()))
    )  # fmt: skip
    differences = np.array(
        [[r[first][seed] - r[second][seed] for r in found.values()] for seed in seeds]
    ).reshape(len(seeds), len(found))
    return _comparison(ALL_PROBLEMS, first, second, differences)


def _comparison(
    problem: str,
    first: str,
    second: str,
    differences: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    *,
    superiority: float = float("nan"),
    mann_whitney_p: float = float("nan"),
) -> Comparison:
    p = signed_rank_p(differences) if len(differences) else 1.0
    return Comparison(
        problem=problem,
        first=first,
        second=second,
        n_seeds=len(differences),
        n_better=int((differences < -TIE_PERCENT).sum()),
        n_tied=int((np.abs(differences) <= TIE_PERCENT).sum()),
        n_worse=int((differences > TIE_PERCENT).sum()),
        superiority=superiority,
        signed_rank_p=p,
        holm_p=p,
        smallest_holm_p=smallest_p(len(differences)),
        mann_whitney_p=mann_whitney_p,
    )


def _corrected(comparisons: list[Comparison]) -> list[Comparison]:
    return [
        replace(
            comparison,
            holm_p=p,
            smallest_holm_p=min(1.0, comparison.smallest_holm_p * len(comparisons)),
        )
        for comparison, p in zip(
            comparisons, holm([c.signed_rank_p for c in comparisons]), strict=True
        )
    ]
