"""Curves over evaluations: regret and success of many runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from parabolt.analysis.metrics import REGRET_FLOOR, inference_regret, simple_regret

if TYPE_CHECKING:
    from collections.abc import Sequence

    from parabolt.experiments.run import Run
    from parabolt.outcome import FloatArray


@dataclass(frozen=True, eq=False)
class Curve:
    """A quantity over evaluations, summarised over runs; arrays are (t,).

    Attributes:
        evaluation: Number of the evaluation, from 1.
        mean: Mean over runs.
        median: Median over runs.
        lower: First quartile.
        upper: Third quartile.
        mean_log: Mean of the natural logarithms, clipped below at the regret floor.
    """

    evaluation: FloatArray
    mean: FloatArray
    median: FloatArray
    lower: FloatArray
    upper: FloatArray
    mean_log: FloatArray


def regret_curve(runs: Sequence[Run], *, is_inference: bool = False) -> Curve:
    """Simple (or inference) regret of runs, in percent of the optimum.

    A run that ended early keeps its last value. The logarithm is that of the regret in
    iterations/s, clipped at `REGRET_FLOOR` as in the published results.
    """
    measure = inference_regret if is_inference else simple_regret
    absolute = padded([measure(run) for run in runs])
    optimum = np.array([run.optimum for run in runs])[:, None]
    start = max(run.n_initial for run in runs) if is_inference else 0
    shown = 100.0 * absolute[:, start:] / optimum
    lower, median, upper = np.quantile(shown, [0.25, 0.5, 0.75], axis=0)
    return Curve(
        evaluation=np.arange(start + 1, absolute.shape[1] + 1, dtype=np.float64),
        mean=shown.mean(axis=0),
        median=median,
        lower=lower,
        upper=upper,
        mean_log=np.log(np.maximum(absolute[:, start:], REGRET_FLOOR)).mean(axis=0),
    )


def success_curve(runs: Sequence[Run]) -> FloatArray:
    """Share of runs that have evaluated the optimum, after each evaluation, (t,)."""
    share: FloatArray = (padded([simple_regret(run) for run in runs]) <= REGRET_FLOOR).mean(axis=0)
    return share


def padded(curves: Sequence[FloatArray]) -> FloatArray:
    """Curves of one length (n_runs, t): one that ended early keeps its last value."""
    length = max(len(curve) for curve in curves)
    return np.array([np.pad(curve, (0, length - len(curve)), mode="edge") for curve in curves])
