"""Stationary kernels of unit variance, as functions of a scaled squared distance.

Symbols: D is sum_j (x_j - x'_j)^2 / l_j^2, any shape; K is the kernel there; `slope` is dK/dD, all
that a gradient in the lengthscales needs: dK/dl_j = slope * (-2 / l_j^3) (x_j - x'_j)^2.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.linalg import LinAlgError, cholesky

from parabolt.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from parabolt.outcome import FloatArray

KernelName = Literal["rbf", "matern52"]


def rbf(D: FloatArray) -> tuple[FloatArray, FloatArray]:
    """RBF kernel exp(-D/2) and its slope (Rasmussen & Williams 2006, eq. 4.9)."""
    K: FloatArray = np.exp(-0.5 * D)
    return K, -0.5 * K


def matern52(D: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Matern-5/2 kernel (1 + r + r^2/3) exp(-r), r = sqrt(5 D), and its slope (eq. 4.17)."""
    r = math.sqrt(5.0) * np.sqrt(D)
    decay = np.exp(-r)
    return (1.0 + r + r**2 / 3.0) * decay, (-5.0 / 6.0) * (1.0 + r) * decay


#: Kernel and slope by name.
KERNELS: dict[str, Callable[[FloatArray], tuple[FloatArray, FloatArray]]] = {
    "rbf": rbf,
    "matern52": matern52,
}


def check_kernel(name: str) -> None:
    """Raises unless there is a kernel of that name.

    Raises:
        OptionError: Naming the kernels there are.
    """
    if name not in KERNELS:
        raise OptionError(f"kernel: expected one of {', '.join(KERNELS)}, got {name!r}")


def squared_differences(X: FloatArray) -> FloatArray:
    """Squared differences per input between all pairs of rows of X (n, d): (d, n, n)."""
    columns = X.T
    return (columns[:, :, None] - columns[:, None, :]) ** 2


def kernel_matrix(
    name: KernelName, X1: FloatArray, X2: FloatArray, lengthscales: FloatArray
) -> FloatArray:
    """Kernel between rows of X1 (n1, d) and X2 (n2, d): (n1, n2), with ARD lengthscales (d,)."""
    A, B = X1 / lengthscales, X2 / lengthscales
    D = A @ (-2.0 * B.T)
    D += (A**2).sum(axis=1)[:, None]
    D += (B**2).sum(axis=1)
    np.maximum(D, 0.0, out=D)
    if name == "rbf":  # in place: a million candidates make this matrix large
        D *= -0.5
        return np.exp(D, out=D)
    return KERNELS[name](D)[0]


def cholesky_root(C: FloatArray) -> FloatArray:
    """Lower R (N, N) with R R' = C, but for a jitter on the diagonal of the covariance C.

    The jitter starts at 1e-10 of the largest variance and grows until C is positive definite:
    candidates that differ in an inert knob only are as good as equal.
    """
    jitter = 1e-10 * float(C.diagonal().max())
    while True:
        try:
            return np.asarray(cholesky(C + jitter * np.eye(len(C)), lower=True))
        except LinAlgError:
            jitter *= 10.0
