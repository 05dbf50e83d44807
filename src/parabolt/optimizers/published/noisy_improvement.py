"""Expected improvement over a best value that is itself uncertain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp, ndtri
from scipy.stats import qmc

from parabolt.optimizers.gp.acquisition import log_expected_improvement, log_probability_feasible
from parabolt.optimizers.gp.kernels import cholesky_root

if TYPE_CHECKING:
    from parabolt.optimizers.deadline import Deadline
    from parabolt.optimizers.gp.gp import GaussianProcess
    from parabolt.outcome import FloatArray

#: Where no baseline point fits in a sample, anything above this many standard deviations below the
#: baseline's worst counts as an improvement.
_FLOOR_STDS = 6.0
#: Samples that are scored at once; after each such block the deadline is looked at.
_BLOCK = 32


class ConditionedGP:
    """Posterior of a GP given its noiseless values at some points, one set of values per sample.

    Args:
        gp: The posterior before.
        baseline: Points (b, d) at which the noiseless values are sampled.
        X: Points (N, d) to predict.
        normals: Standard normals (S, b) that the samples are made of.

    Attributes:
        at_baseline: Sampled values (S, b).
        std: Posterior standard deviation (N,), the same for every sample.
    """

    def __init__(
        self, gp: GaussianProcess, baseline: FloatArray, X: FloatArray, normals: FloatArray
    ) -> None:
        mean, _ = gp.predict(baseline)
        self._mean, std = gp.predict(X)
        root = cholesky_root(gp.covariance(baseline, baseline))
        self.at_baseline = mean + normals @ root.T
        self._gain = np.linalg.solve(root, gp.covariance(baseline, X))
        self._normals = normals
        left = std**2 - np.einsum("ij,ij->j", self._gain, self._gain)
        self.std = np.sqrt(np.maximum(left, 1e-9 * gp.standardization.scale**2))

    def mean(self, samples: slice) -> FloatArray:
        """Posterior means (s, N) of some of the samples."""
        return self._mean + self._normals[samples] @ self._gain


def log_noisy_constrained_ei(
    objective: GaussianProcess,
    constraint: GaussianProcess | None,
    baseline: FloatArray,
    X: FloatArray,
    n_samples: int,
    rng: np.random.Generator,
    deadline: Deadline | None = None,
) -> FloatArray:
    """Log noisy constrained EI (N,) at X (N, d) (Letham et al. 2019, eq. 9).

    The noiseless throughput and margin at the baseline are integrated over by a scrambled Sobol
    sequence; given them, EI over the best baseline point that fits and the probability of
    feasibility are in closed form. Where a sample lets none of the baseline fit, the best value is
    six standard deviations below its least.

    Args:
        objective: GP of throughput.
        constraint: GP of the margin, or None where every run fits.
        baseline: Distinct observed points (b, d), b >= 1.
        X: Points to score.
        n_samples: Samples.
        rng: Scrambles the sequence.
        deadline: When to stop with fewer samples; one block of 32 is always made.
    """
    b = len(baseline)
    points = qmc.Sobol(2 * b, scramble=True, rng=rng).random(n_samples)
    normals = ndtri(np.clip(points, 1e-12, 1.0 - 1e-12))
    f = ConditionedGP(objective, baseline, X, normals[:, :b])
    c = None
    if constraint is not None:
        c = ConditionedGP(constraint, baseline, X, normals[:, b:])
    fits = np.ones((n_samples, b), dtype=bool) if c is None else c.at_baseline <= 0.0
    mean, std = objective.predict(baseline)
    floor = float((mean - _FLOOR_STDS * std).min())
    best = np.where(fits, f.at_baseline, floor).max(axis=1)
    parts: list[FloatArray] = []
    for start in range(0, n_samples, _BLOCK):
        if parts and deadline is not None and deadline.is_over():
            break
        part = slice(start, min(start + _BLOCK, n_samples))
        value = log_expected_improvement(f.mean(part) - best[part, None], f.std, 0.0)
        if c is not None:
            value = value + log_probability_feasible(c.mean(part), c.std)
        parts.append(value)
    values = np.concatenate(parts)
    return np.asarray(logsumexp(values, axis=0) - np.log(len(values)))
