"""How many seeds a difference between two optimizers needs to be seen.

The test is that of `comparison`: signed ranks over seeds, two-sided, at the level that Holm's
correction asks of the first of m comparisons, level / m.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import norm

from parabolt.analysis.metrics import final_regret_percent, group_runs
from parabolt.analysis.signed_ranks import (
    block_scores,
    normal_p,
    signed_rank_p,
    smallest_p,
)
from parabolt.errors import OptionError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from parabolt.experiments.run import Run
    from parabolt.outcome import FloatArray

    #: Draws paired differences of n seeds, (n,).
    Draw = Callable[[np.random.Generator, int], FloatArray]

#: No more seeds than this are looked at.
MAX_SEEDS = 200

_N_DRAWS = 1_000

#: With more seeds than this, a simulated study's p-value is that of the normal distribution.
_MAX_EXACT = 25


@dataclass(frozen=True)
class SeedsNeeded:
    """Seeds that a comparison needs.

    Attributes:
        problem: Name of the problem; empty where the effect is assumed.
        first: One optimizer; empty where the effect is assumed.
        second: The other.
        win_share: Share of seeds on which the better one ends with less regret, ties left out.
        n_comparisons: Comparisons that Holm's correction is over.
        n_seeds: Fewest seeds that give the power; None if `MAX_SEEDS` do not.
    """

    problem: str
    first: str
    second: str
    win_share: float
    n_comparisons: int
    n_seeds: int | None


def seeds_for_share(
    win_share: float, n_comparisons: int, *, level: float = 0.05, power: float = 0.8
) -> SeedsNeeded:
    """Seeds that show an optimizer that wins on a share of them; differences are taken as normal.

    Args:
        win_share: Share of seeds on which the better one ends with less regret.
        n_comparisons: Comparisons that Holm's correction is over: m - 1 with one optimizer,
            m (m - 1) / 2 for all pairs.
        level: Level of the test.
        power: Chance to see the difference.

    Raises:
        OptionError: For a value outside what is allowed.
    """
    if not 0.5 < win_share <= 1.0:
        raise OptionError(f"win share: expected more than 0.5 and at most 1, got {win_share!r}")
    shift = norm.ppf(min(win_share, 1.0 - 1e-12))

    def draw(rng: np.random.Generator, n: int) -> FloatArray:
        return rng.normal(shift, 1.0, n)

    n_seeds = fewest_seeds(draw, n_comparisons, level=level, power=power)
    return SeedsNeeded("", "", "", win_share, n_comparisons, n_seeds)


def seeds_for_runs(
    runs: Sequence[Run], reference: str, *, level: float = 0.05, power: float = 0.8
) -> list[SeedsNeeded]:
    """Seeds that each comparison with the reference needs, if further seeds are like those there.

    Paired differences of final regret are drawn again, with replacement, from those of the runs.

    Raises:
        UnknownNameError: If no run is of the reference.
        OptionError: For a value outside what is allowed.
    """
    needed = []
    for problem, groups in group_runs(runs).items():
        if reference not in groups:
            raise UnknownNameError.of("optimizer to compare with", reference, groups)
        regrets = {
            name: {run.key.seed: final_regret_percent(run) for run in group}
            for name, group in groups.items()
        }
        for other in (name for name in regrets if name != reference):
            seeds = sorted({*regrets[reference]} & {*regrets[other]})
            seen = np.array([regrets[reference][s] - regrets[other][s] for s in seeds]).round(9)

            def draw(rng: np.random.Generator, n: int, seen: FloatArray = seen) -> FloatArray:
                return rng.choice(seen, n)

            untied = seen[seen != 0.0]
            share = float(np.mean(untied < 0.0)) if len(untied) else 0.5
            n_comparisons = len(regrets) - 1
            n_seeds = (
                fewest_seeds(draw, n_comparisons, level=level, power=power) if len(untied) else None
            )
            needed.append(
                SeedsNeeded(problem, reference, other, share, n_comparisons, n_seeds)
            )  # fmt: skip
    return needed


def fewest_seeds(draw: Draw, n_comparisons: int, *, level: float, power: float) -> int | None:
    """Fewest seeds whose differences, as `draw` gives them, reach the power; None if none do."""
    for name, value in (("level", level), ("power", power)):
        if not 0.0 < value < 1.0:
            raise OptionError(f"{name}: expected a number between 0 and 1, got {value!r}")
    if n_comparisons < 1:
        raise OptionError(f"comparisons: expected at least 1, got {n_comparisons}")
    least = next(n for n in range(1, MAX_SEEDS + 1) if smallest_p(n) <= level / n_comparisons)
    if power_of(draw, MAX_SEEDS, level / n_comparisons) < power:
        return None
    low, high = least, MAX_SEEDS
    while low < high:
        middle = (low + high) // 2
        if power_of(draw, middle, level / n_comparisons) >= power:
            high = middle
        else:
            low = middle + 1
    return low


def power_of(draw: Draw, n_seeds: int, level: float) -> float:
    """Share of simulated studies of n seeds whose p-value is at most the level; seeded."""
    rng = np.random.default_rng(0)
    studies = [draw(rng, n_seeds) for _ in range(_N_DRAWS)]
    if n_seeds <= _MAX_EXACT:
        p_values = np.array([signed_rank_p(study) for study in studies])
    else:
        p_values = normal_p(np.stack([block_scores(study) for study in studies]))
    return float(np.mean(p_values <= level))
