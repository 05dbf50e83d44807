"""Evaluations to the optimum, where runs that never found it are censored at their end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import CensoredData, ecdf

from parabolt.analysis.metrics import evaluations_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from parabolt.experiments.run import Run
    from parabolt.outcome import BoolArray, FloatArray


@dataclass(frozen=True)
class TimeToOptimum:
    """Evaluations to the optimum over runs.

    Attributes:
        n_runs: Runs.
        n_found: Runs that found it.
        median: Kaplan-Meier median; inf if the survival curve stays above one half.
        restricted_mean: Mean up to `horizon`: the area under the survival curve.
        horizon: Where the restricted mean ends: the longest run.
    """

    n_runs: int
    n_found: int
    median: float
    restricted_mean: float
    horizon: int


def time_to_optimum(runs: Sequence[Run], *, within: float = 0.0) -> TimeToOptimum:
    """Summary of evaluations to the optimum (or to within a fraction of it).

    Kaplan & Meier 1958; the restricted mean after Royston & Parmar 2013.
    """
    times, is_found = _censored(runs, within)
    steps, survival = _survival(times, is_found)
    below = np.flatnonzero(survival <= 0.5 + 1e-12)  # a product of ratios, so 1/2 may be off
    horizon = float(times.max())
    edges = np.concatenate([[0.0], steps[steps < horizon], [horizon]])
    heights = np.concatenate([[1.0], survival[steps < horizon]])
    return TimeToOptimum(
        n_runs=len(runs),
        n_found=int(is_found.sum()),
        median=float(steps[below[0]]) if len(below) else math.inf,
        restricted_mean=float(np.sum(np.diff(edges) * heights)),
        horizon=int(horizon),
    )


def _censored(runs: Sequence[Run], within: float) -> tuple[FloatArray, BoolArray]:
    found = [evaluations_to(run, within=within) for run in runs]
    times = [len(run) if n is None else n for n, run in zip(found, runs, strict=True)]
    return np.array(times, dtype=np.float64), np.array([n is not None for n in found])


def _survival(times: FloatArray, is_found: BoolArray) -> tuple[FloatArray, FloatArray]:
    if not is_found.any():
        return times.max(keepdims=True), np.ones(1)
    data = CensoredData(uncensored=times[is_found], right=times[~is_found])
    survival = ecdf(data).sf
    return survival.quantiles, survival.probabilities
