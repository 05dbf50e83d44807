"""The signed-rank test over independent blocks, exact with ties, zeros and several strata.

Symbols: n blocks, k strata; D (n, k) holds the paired differences, one column per stratum. Each
column is ranked by size, and a block's score is the sum over its row of sign times rank; zeros keep
their place among the ranks and count for neither sign (Pratt 1959). Under the null hypothesis all
differences of a block change their sign together, so the scores' signs are independent coins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import norm, rankdata

if TYPE_CHECKING:
    from parabolt.outcome import FloatArray, IntArray

#: With more blocks than this, the exact distribution gives way to a normal one.
MAX_EXACT = 200


def signed_rank_p(differences: FloatArray) -> float:
    """Two-sided p-value of paired differences (n,) or (n, k); 1 where all are zero.

    With one stratum this is Wilcoxon's test (1945); with several, the blocks' scores add up over
    strata. Differences are compared to 1e-9, as a rounding error would part what is tied.
    """
    scores = block_scores(differences)
    if not scores.any():
        return 1.0
    if len(scores) > MAX_EXACT:
        return float(normal_p(scores[None])[0])
    return _exact_p(scores)


def smallest_p(n_blocks: int) -> float:
    """The smallest p-value that n blocks can give: all differences of one sign."""
    return min(1.0, 2.0 ** (1 - n_blocks))


def block_scores(differences: FloatArray) -> IntArray:
    """Twice each block's sum of signed ranks, (n,): whole numbers, also where ranks are tied."""
    columns = np.asarray(differences, dtype=np.float64).round(9)
    columns = columns.reshape(len(columns), -1)
    ranks = np.rint(2.0 * rankdata(np.abs(columns), axis=0)).astype(np.int64)
    scores: IntArray = (np.sign(columns).astype(np.int64) * ranks).sum(axis=1)
    return scores


def normal_p(scores: IntArray) -> FloatArray:
    """Two-sided p-values (m,) of scores (m, n) by the normal distribution; 1 where all are zero."""
    squares = np.sum(scores.astype(np.float64) ** 2, axis=1)
    p: FloatArray = 2.0 * norm.sf(np.abs(scores.sum(axis=1)) / np.sqrt(np.maximum(squares, 1.0)))
    return p


def _exact_p(scores: IntArray) -> float:
    """Two-sided p-value of a sum of scores (n,) whose signs are fair coins."""
    steps = np.abs(scores)
    chance = np.ones(1)  # chance[s]: of the scores with a plus adding up to s
    for step in steps:
        chance = 0.5 * (np.pad(chance, (0, step)) + np.pad(chance, (step, 0)))
    seen = int(scores[scores > 0].sum())
    tail = min(chance[: seen + 1].sum(), chance[seen:].sum())
    return float(min(1.0, 2.0 * tail))
