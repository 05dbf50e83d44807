"""A finite candidate set seen as a subset of a product of small sets.

The RBF kernel is a product over inputs. If the inputs are split into groups, the candidates are a
subset of the product of the values that each group takes, and over that product the kernel matrix
is the Kronecker product of the groups' kernel matrices. With n_g distinct values in group g, a
joint sample at all candidates then takes about prod(n_g) sum(n_g) + sum(n_g^3) / 3 operations in
place of N^3 / 3, and it is exact: 10^10 in place of 10^17 for a million candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from parabolt.optimizers.gp.kernels import cholesky_root, kernel_matrix

if TYPE_CHECKING:
    from parabolt.outcome import FloatArray, IntArray

#: Rows that the choice of the groups looks at, drawn at random: a stride would miss whole levels.
_LOOK_AT = 3_000


@dataclass(frozen=True)
class ProductSet:
    """Groups of inputs and, for each, the distinct values that occur among the candidates.

    Attributes:
        groups: Columns of each group.
        values: Values (n_g, d_g) of each group.
        cell: Cell of every candidate (N,) in the product, numbered with the last group fastest.
    """

    groups: tuple[IntArray, ...]
    values: tuple[FloatArray, ...]
    cell: IntArray

    @classmethod
    def of(cls, X: FloatArray) -> ProductSet:
        """Splits the columns of X (N, d) where sampling is cheapest."""
        levels = np.stack([_ranks(column) for column in X.T], axis=1)
        looked_at = np.random.default_rng(0).permutation(len(levels))[:_LOOK_AT]
        groups = _cheap_groups(levels[looked_at])
        values = []
        cell = np.zeros(len(X), dtype=np.int64)
        for group in groups:
            ranks = _ranks(_codes(levels[:, group]))
            of_group = np.empty((int(ranks.max()) + 1, len(group)))
            of_group[ranks] = X[:, group]
            values.append(of_group)
            cell = cell * len(of_group) + ranks
        return cls(groups, tuple(values), cell)

    def draw(self, lengthscales: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Draws n joint samples (n, N) of a zero-mean GP with the unit RBF kernel."""
        roots = [
            cholesky_root(kernel_matrix("rbf", V, V, lengthscales[group]))
            for V, group in zip(self.values, self.groups, strict=True)
        ]
        samples = np.empty((n, len(self.cell)))
        for sample in samples:
            cells = rng.standard_normal(int(np.prod([len(root) for root in roots])))
            for root in roots:  # each takes the first axis and leaves it as the last
                cells = (root @ cells.reshape(len(root), -1)).T
            sample[:] = cells.reshape(-1)[self.cell]
        return samples


def _cheap_groups(levels: IntArray) -> tuple[IntArray, ...]:
    """Splits the largest group in two for as long as that makes sampling cheaper."""
    groups = [np.arange(levels.shape[1])]
    while True:
        sizes = [_n_distinct(levels, group) for group in groups]
        largest = int(np.argmax(sizes))
        others = sizes[:largest] + sizes[largest + 1 :]
        columns, best, least = groups[largest], None, _cost(sizes)
        for size in range(1, len(columns) // 2 + 1):
            for chosen in combinations(columns.tolist(), size):
                pair = np.array(chosen), np.setdiff1d(columns, chosen)
                cost = _cost([*others, *(_n_distinct(levels, part) for part in pair)])
                if cost < least:
                    best, least = pair, cost
        if best is None:
            return tuple(groups)
        groups[largest : largest + 1] = best


def _ranks(x: FloatArray | IntArray) -> IntArray:
    """Rank (N,) of each value among the distinct ones."""
    # Several times as fast as `np.unique(..., return_inverse=True)`, which sorts indices.
    return np.searchsorted(np.unique(x), x)


def _cost(sizes: list[int]) -> float:
    n = np.array(sizes, dtype=np.float64)
    return float(2.0 * n.prod() * n.sum() + (n**3).sum() / 3.0)


def _n_distinct(levels: IntArray, group: IntArray) -> int:
    return len(np.unique(_codes(levels[:, group])))


def _codes(levels: IntArray) -> IntArray:
    """One number (N,) per row of levels (N, k); the same for the same row only."""
    codes = np.zeros(len(levels), dtype=np.int64)
    for column in levels.T:
        codes = codes * (int(column.max()) + 1) + column
    return codes
