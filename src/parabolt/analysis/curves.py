"""Curves of many runs: regret and success over evaluations, hours or GPU-hours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from parabolt.analysis.metrics import REGRET_FLOOR, inference_regret, simple_regret

if TYPE_CHECKING:
    from collections.abc import Sequence

    from parabolt.experiments.run import Run
    from parabolt.outcome import FloatArray

#: What a curve may be over. Hours are those of the simulated clock.
Axis = Literal["evaluations", "hours", "GPU-hours"]
AXES: tuple[Axis, ...] = ("evaluations", "hours", "GPU-hours")

#: A curve over hours has no more points than this.
_MOST_TIMES = 1_000


@dataclass(frozen=True, eq=False)
class Band:
    """A quantity summarised over runs; arrays are (t,).

    Attributes:
        mean: Mean over runs.
        median: Median over runs.
        lower: First quartile.
        upper: Third quartile.
    """

    mean: FloatArray
    median: FloatArray
    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True, eq=False)
class Curve:
    """Regret and success of runs; arrays are (t,).

    Attributes:
        axis: What it is over.
        at: Number of the evaluation, from 1, or hours.
        regret: Regret in percent of the optimum.
        mean_log_regret: Mean of the natural logarithms of the regret in iterations/s, clipped below
            at the regret floor, as in the published results.
        found: Share of runs that have evaluated the optimum.
    """

    axis: Axis
    at: FloatArray
    regret: Band
    mean_log_regret: FloatArray
    found: FloatArray


def regret_curve(
    runs: Sequence[Run], axis: Axis = "evaluations", *, is_inference: bool = False
) -> Curve:
    """Simple (or inference) regret and success of runs.

    A run that ended early keeps its last value. Over hours, a run's regret is the whole optimum
    until its first trial has ended.

    Args:
        runs: Runs, at least one, of one problem.
        axis: What the curve is over.
        is_inference: Whether the regret is that of the recommendations; it starts after the design.
    """
    measure = inference_regret if is_inference else simple_regret
    start = max(run.n_initial for run in runs) if is_inference else 0
    regrets, found = [measure(run) for run in runs], [simple_regret(run) for run in runs]
    if axis == "evaluations":
        absolute, simple = padded(regrets), padded(found)
        at = np.arange(1, absolute.shape[1] + 1, dtype=np.float64)
    else:
        clocks = [_clock(run, axis) for run in runs]
        at = _times(clocks)
        first = [run.optimum for run in runs]
        absolute, simple = (_held(at, clocks, curves, first) for curves in (regrets, found))
    absolute, simple, at = absolute[:, start:], simple[:, start:], at[start:]
    optimum = np.array([run.optimum for run in runs])[:, None]
    return Curve(
        axis=axis,
        at=at,
        regret=band(100.0 * absolute / optimum),
        mean_log_regret=np.log(np.maximum(absolute, REGRET_FLOOR)).mean(axis=0),
        found=(simple <= REGRET_FLOOR).mean(axis=0),
    )


def has_clock(runs: Sequence[Run], axis: Axis) -> bool:
    """Whether the end of every trial of finished runs is known on an axis."""
    finished = [run for run in runs if not run.is_stand_in]
    return bool(finished) and all(bool(np.isfinite(_clock(run, axis)).all()) for run in finished)


def band(values: FloatArray) -> Band:
    """Values (n_runs, t) summarised over runs."""
    lower, median, upper = np.quantile(values, [0.25, 0.5, 0.75], axis=0)
    return Band(values.mean(axis=0), median, lower, upper)


def padded(curves: Sequence[FloatArray]) -> FloatArray:
    """Curves of one length (n_runs, t): one that ended early keeps its last value."""
    length = max(len(curve) for curve in curves)
    return np.array([np.pad(curve, (0, length - len(curve)), mode="edge") for curve in curves])


def _clock(run: Run, axis: Axis) -> FloatArray:
    """Where each evaluation of a run ended on an axis, (t,)."""
    if axis == "evaluations":
        return np.arange(1, len(run) + 1, dtype=np.float64)
    hours: FloatArray = run.end_s / 3600.0 if axis == "hours" else run.gpu_hours
    return hours


def _times(clocks: Sequence[FloatArray]) -> FloatArray:
    """When trials ended, ascending; of very many, evenly chosen ones and the last."""
    times = np.unique(np.concatenate([clock[np.isfinite(clock)] for clock in clocks]))
    if len(times) <= _MOST_TIMES:
        return times
    return times[np.linspace(0, len(times) - 1, _MOST_TIMES).astype(np.int64)]


def _held(
    at: FloatArray,
    clocks: Sequence[FloatArray],
    curves: Sequence[FloatArray],
    first: Sequence[float],
) -> FloatArray:
    """Each curve (t,) of values at its clock's times, held until the next, at times (m,)."""
    held = []
    for clock, curve, start in zip(clocks, curves, first, strict=True):
        values = np.concatenate([[start], curve])
        known = clock[np.isfinite(clock)]  # a failed run has no clock, and keeps its first value
        held.append(values[np.searchsorted(known, at, side="right")])
    return np.array(held)
