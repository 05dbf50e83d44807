"""Joint samples of a posterior at many candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parabolt.optimizers.gp.kernels import cholesky_root

if TYPE_CHECKING:
    from parabolt.optimizers.gp.gp import GaussianProcess
    from parabolt.optimizers.gp.product_set import ProductSet
    from parabolt.outcome import FloatArray, IntArray


def draw_by_update(
    gp: GaussianProcess,
    X: FloatArray,
    observed: IntArray,
    product: ProductSet,
    n: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Draws n exact joint samples (n, N) of the latent function at all candidates.

    They are in the unit of the targets.

    Matheron's rule (Wilson et al. 2020, eq. 9): f + k(., X_n) A^-1 (z - f(X_n) - e) for a prior
    sample f and noise e has the posterior's distribution. No (N, N) matrix is needed.

    Args:
        gp: Posterior with an RBF kernel.
        X: All candidates (N, d).
        observed: The candidates (n_obs,) that the GP's observations are of, in their order.
        product: The candidates as a product set.
        n: Samples.
        rng: Generator.
    """
    f = product.draw(gp.hyper.lengthscales, n, rng)
    noise = np.sqrt(gp.hyper.noise) * rng.standard_normal((n, len(observed)))
    weights = gp.solve((gp.residual - f[:, observed] - noise).T)
    for block in gp.blocks(len(X)):
        f[:, block] += (gp.cross(X[block]) @ weights).T + gp.mean_at(X[block])
    f *= gp.standardization.scale
    f += gp.standardization.shift
    return f


def draw_by_cholesky(
    gp: GaussianProcess, X: FloatArray, n: int, rng: np.random.Generator
) -> FloatArray:
    """Draws n joint samples (n, N) at X (N, d) with any kernel, at a cost of N^3."""
    mean, _ = gp.predict(X)
    root = cholesky_root(gp.covariance(X, X))
    return mean + rng.standard_normal((n, len(X))) @ root.T
