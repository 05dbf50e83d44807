"""Constrained knowledge gradient: what one more observation is worth to the recommendation.

Symbols: M scored candidates x, R candidates x' that a recommendation may name. With independent
standard normals Zy and Zc, an observation at x moves the posterior to

    mu(x')  + sy(x', x) Zy           throughput, s(x', x) = k(x', x) / sqrt(k(x, x) + noise)
    muc(x') + sc(x', x) Zc           margin, with variance kc(x', x') - sc(x', x)^2

and the value of a state is max over x' of throughput mean times P(feasible) (Ungredda & Branke
2021, eq. 9). For each quantile of Zc that product is a line in Zy, so its maximum over a few
candidates is integrated in closed form (eq. 10; Scott et al. 2011, alg. 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri

if TYPE_CHECKING:
    from parabolt.optimizers.deadline import Deadline
    from parabolt.optimizers.gp.gp import GaussianProcess
    from parabolt.outcome import BoolArray, FloatArray, IntArray

#: Quantiles of Zy (paper, appendix D) and of Zc (left open by the paper; published runs).
Y_QUANTILES: FloatArray = ndtri(np.arange(1, 10) / 10.0)
C_QUANTILES: FloatArray = ndtri(np.arange(1, 6) / 6.0)
#: Candidates that every outcome adds to the set over which the maximum is taken. The paper's one
#: leaves, on a finite set, a single line whose expected maximum is no gain at all.
BEST_PER_OUTCOME = 2

_MIN_VARIANCE = 1e-12
_BLOCK_CELLS = 1 << 13


@dataclass(frozen=True)
class Lookahead:
    """What an observation at each of M candidates does to a posterior at R others.

    Attributes:
        mean: Posterior mean (R,).
        variance: Posterior variance (R,).
        sensitivity: s(x', x) (M, R).
    """

    mean: FloatArray
    variance: FloatArray
    sensitivity: FloatArray

    @classmethod
    def of(cls, gp: GaussianProcess, scored: FloatArray, inner: FloatArray) -> Lookahead:
        """For a GP, scored inputs (M, d) and inner inputs (R, d)."""
        mean, std = gp.predict(inner)
        _, scored_std = gp.predict(scored)
        sensitivity = gp.covariance(scored, inner)
        sensitivity /= np.sqrt(scored_std**2 + gp.noise_variance)[:, None]
        return cls(mean, std**2, sensitivity)


def contenders(
    mean: FloatArray, std: FloatArray, margin_mean: FloatArray, margin_std: FloatArray
) -> IntArray:
    """Candidates (R,) that can be among the best two under any outcome; the others cannot.

    |s(x', x)| <= std(x') whatever is observed, which bounds throughput and P(feasible) after the
    observation: with r = margin_mean / margin_std and z the largest quantile, P(feasible) is at
    least Phi(sqrt(r^2 - z^2)) if r < -z, and at most Phi(-sqrt(r^2 - z^2)) if r > z. A candidate
    whose upper bound is below the second largest lower bound is never needed.
    """
    reach = Y_QUANTILES[-1] * std
    low, high = mean - reach, mean + reach
    r, z = margin_mean / margin_std, C_QUANTILES[-1]
    moved = np.sqrt(np.maximum(r**2 - z**2, 0.0))
    p_low = np.where(r < -z, ndtr(moved), 0.0)
    p_high = np.where(r > z, ndtr(-moved), 1.0)
    lower = low * np.where(low >= 0.0, p_low, p_high)
    upper = high * np.where(high >= 0.0, p_high, p_low)
    n_best = min(BEST_PER_OUTCOME, len(mean))
    bar = np.partition(lower, len(mean) - n_best)[len(mean) - n_best]
    return np.flatnonzero(upper >= bar - 1e-9 * abs(bar))


def expected_maximum(a: FloatArray, s: FloatArray) -> FloatArray:
    """E[max_i a_i + s_i Z] (...,) of lines a, s (..., L), Z standard normal.

    Line i is the maximum on an interval between its crossings with flatter and with steeper lines;
    on it, the integral is a (Phi(hi) - Phi(lo)) + s (phi(lo) - phi(hi)). Of equal lines the first
    counts. Costs L^2, in place of L log L, but takes whole arrays.
    """
    ds = s[..., :, None] - s[..., None, :]
    da = a[..., None, :] - a[..., :, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = da / ds
    low = np.where(ds > 0.0, crossing, -np.inf).max(axis=-1)
    high = np.where(ds < 0.0, crossing, np.inf).min(axis=-1)
    earlier = np.tri(a.shape[-1], k=-1, dtype=bool)
    is_beaten = ((ds == 0.0) & ((da > 0.0) | ((da == 0.0) & earlier))).any(axis=-1)
    mass = a * (ndtr(high) - ndtr(low)) + s * (_density(low) - _density(high))
    return np.asarray(np.where(is_beaten | (low >= high), 0.0, mass).sum(axis=-1))


def _density(z: FloatArray) -> FloatArray:
    return np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)


def knowledge_gradient(
    objective: Lookahead,
    constraint: Lookahead,
    recommended: int,
    deadline: Deadline | None = None,
) -> FloatArray:
    """Expected gain (M,) in the value of the recommendation, of observing each scored candidate.

    Args:
        objective: Of throughput.
        constraint: Of the margin, at the same candidates.
        recommended: Index among the R of today's recommendation.
        deadline: When to stop; candidates not scored by then get -inf, the first block always is.
    """
    M, R = objective.sensitivity.shape
    gain = np.full(M, -np.inf)
    size = max(1, _BLOCK_CELLS // R)
    for start in range(0, M, size):
        if start and deadline is not None and deadline.is_over():
            break
        block = slice(start, min(start + size, M))
        gain[block] = _block_gain(objective, constraint, recommended, block)
    return gain


def _block_gain(
    objective: Lookahead, constraint: Lookahead, recommended: int, block: slice
) -> FloatArray:
    sy, sc = objective.sensitivity[block], constraint.sensitivity[block]
    left = np.sqrt(np.maximum(constraint.variance - sc**2, _MIN_VARIANCE))
    moved = constraint.mean + C_QUANTILES[:, None, None] * sc
    p_feasible = ndtr(-moved / left)  # (5, M, R)
    a, s = objective.mean * p_feasible, sy * p_feasible
    members = np.zeros(sy.shape, dtype=bool)
    for a_c, s_c in zip(a, s, strict=True):
        _mark_best(members, a_c + Y_QUANTILES[:, None, None] * s_c)
    index = _member_index(members)[None]
    gain = expected_maximum(
        np.take_along_axis(a, index, axis=-1), np.take_along_axis(s, index, axis=-1)
    )
    return np.asarray((gain - a[..., recommended]).mean(axis=0))


def _mark_best(members: BoolArray, values: FloatArray) -> None:
    """Sets members (M, R) where values (9, M, R) are among the best of their row; spoils values."""
    for _ in range(min(BEST_PER_OUTCOME, values.shape[-1])):
        best = values.argmax(axis=-1, keepdims=True)
        for outcome in best:
            np.put_along_axis(members, outcome, True, axis=-1)  # noqa: FBT003 - numpy's signature
        np.put_along_axis(values, best, -np.inf, axis=-1)


def _member_index(members: BoolArray) -> IntArray:
    """Indices (M, L) of the members in each row of (M, R); short rows repeat their first."""
    counts = members.sum(axis=1)
    index = np.argsort(~members, axis=1, kind="stable")[:, : counts.max()]
    return np.where(np.arange(index.shape[1]) < counts[:, None], index, index[:, :1])
