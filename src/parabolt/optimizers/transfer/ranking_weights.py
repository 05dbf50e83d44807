"""Weights of an ensemble by how well its members rank what was observed.

Feurer, Letham, Hutter and Bakshy, "Practical Transfer Learning for Bayesian Optimization" (arXiv
1802.02219; first of 2018). Symbols: B base models, S samples, n observations. Pairs of equal
observations, such as the margins of runs that failed without one, say nothing of a ranking and do
not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parabolt.optimizers.gp.gp import MIN_VARIANCE

if TYPE_CHECKING:
    from parabolt.optimizers.gp.gp import GaussianProcess
    from parabolt.outcome import FloatArray

#: A base model is dropped whose median loss is above this percentile of the target's losses.
_DILUTION_PERCENTILE = 95.0


def misrankings(samples: FloatArray, y: FloatArray) -> FloatArray:
    """Ordered pairs (S,) that samples (S, n) of a base model rank unlike the observations y (n,).

    The sum over j, k of (f_j < f_k) xor (y_j < y_k).
    """
    return _count(samples[:, :, None] < samples[:, None, :], y)


def misrankings_left_out(samples: FloatArray, y: FloatArray) -> FloatArray:
    """The same (S,) for the target: each sample (S, n) is of an observation that was left out.

    The sum over j, k of (f_j < y_k) xor (y_j < y_k): it is compared with what was observed.
    """
    return _count(samples[:, :, None] < y[None, None, :], y)


def leave_one_out(gp: GaussianProcess) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation (n,) of the latent function at each observation without it.

    Hyper-parameters stay (Rasmussen and Williams 2006, eq. 5.12); the noise is taken off the
    variance.
    """
    inverse = gp.solve(np.eye(len(gp.y)))
    diagonal = inverse.diagonal()
    z = gp.standardization.apply(gp.y)
    mean = z - (inverse @ gp.residual) / diagonal
    variance = np.maximum(1.0 / diagonal - gp.hyper.noise, MIN_VARIANCE)
    scale = gp.standardization.scale
    return gp.standardization.shift + scale * mean, scale * np.sqrt(variance)


def ranking_weights(base_losses: FloatArray, target_losses: FloatArray) -> FloatArray:
    """Weights (B + 1,) of the base models and, last, of the target; they sum to 1.

    A weight is the share of samples in which a model has the least loss. Base models that tie for
    it share it, and with the target it is the target's. A base model whose median loss is above
    the 95th percentile of the target's gets none, so that many poor models don't outweigh the
    target together.

    Args:
        base_losses: (B, S).
        target_losses: (S,).
    """
    limit = np.percentile(target_losses, _DILUTION_PERCENTILE)
    is_kept = np.median(base_losses, axis=1) <= limit
    losses = np.where(is_kept[:, None], base_losses, np.inf)
    least = np.minimum(losses.min(axis=0, initial=np.inf), target_losses)
    is_least = np.vstack([losses == least, target_losses == least])
    is_least[:-1] &= ~is_least[-1]
    shares = is_least / is_least.sum(axis=0)
    return np.asarray(shares.mean(axis=1))


def _count(is_below: object, y: FloatArray) -> FloatArray:
    is_wrong = (is_below != (y[:, None] < y[None, :])) & (y[:, None] != y[None, :])
    return np.asarray(is_wrong.sum(axis=(1, 2)), dtype=np.float64)
