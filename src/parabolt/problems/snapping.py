"""Snapping: any point in bounds stands for its nearest candidate, as in the original classes."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from parabolt.errors import InvalidConfigurationError
from parabolt.problems.problem import ProblemWrapper
from parabolt.space.configuration import are_configurations

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from parabolt.outcome import IntArray
    from parabolt.space.configuration import Configuration

#: Farther than this from a candidate, a point isn't one.
SNAP_TOLERANCE = 1e-8


class SnappedProblem(ProblemWrapper):
    """Answers any encoded point within bounds by its nearest candidate, with a RuntimeWarning."""

    def _rows(self, X: npt.ArrayLike | Sequence[Configuration]) -> IntArray:
        if are_configurations(X):
            X = self.instance.encoding.encode(X)
        points = np.asarray(X, dtype=np.float64)
        lower, upper = self.instance.encoding.bounds
        if points.ndim != 2 or points.shape[1] != len(lower):
            raise InvalidConfigurationError(
                f"expected points of shape (n, {len(lower)}), got {points.shape}"
            )
        outside = ~((points >= lower) & (points <= upper))
        if outside.any():
            row, column = np.argwhere(outside)[0]
            raise InvalidConfigurationError(
                f"row {row}, {self.knobs[column].column}: expected a level from {lower[column]:g} "
                f"to {upper[column]:g}, got {points[row, column]:g}"
            )
        rows = self.space.nearest_rows(points)
        distance = np.linalg.norm(points - self.space.encoded[rows], axis=1)
        n_snapped = int((distance > SNAP_TOLERANCE).sum())
        if n_snapped:
            warnings.warn(
                f"{self.name}: {n_snapped} of {len(points)} points are no candidates and stand for "
                "their nearest; search `space.encoded` instead of the box",
                RuntimeWarning,
                stacklevel=3,
            )
        return rows
