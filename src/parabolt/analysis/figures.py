"""Figures of runs, with matplotlib (extra `plot`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.analysis.metrics import REGRET_FLOOR, group_runs, simple_regret
from parabolt.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from parabolt.experiments.run import Run
    from parabolt.outcome import FloatArray

#: Okabe and Ito's colours, distinct for the colour-blind; line styles keep them apart in grey.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "--", "-.", ":")

#: Below this a regret, in percent of the optimum, is drawn on a linear axis, so that 0 has a place.
_LINEAR_BELOW_PERCENT = 1.0


def regret_curves(runs: Sequence[Run], path: Path) -> None:
    """Draws regret and success against evaluations, a column per problem, into a PNG.

    Above, the mean simple regret in percent of the optimum with the quartiles of the runs as a
    band; below, the share of runs that have evaluated the optimum.

    Raises:
        MissingDependencyError: If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError.of("matplotlib", "plot") from error
    groups = group_runs(runs)
    problems = list(dict.fromkeys(problem for problem, _ in groups))
    optimizers = list(dict.fromkeys(optimizer for _, optimizer in groups))
    figure = Figure(figsize=(4.6 * len(problems) + 0.6, 5.6), layout="constrained", dpi=150)
    axes = figure.subplots(2, len(problems), sharex="col", squeeze=False, height_ratios=[3, 2])
    for column, problem in enumerate(problems):
        for number, optimizer in enumerate(optimizers):
            if group := groups.get((problem, optimizer)):
                look = {"color": COLORS[number % len(COLORS)], "ls": STYLES[number % len(STYLES)]}
                _draw(axes[0][column], axes[1][column], group, optimizer, look)
        shown = [run for run in runs if run.key.problem == problem]
        _label(axes[0][column], axes[1][column], problem, shown, is_first=column == 0)
    figure.savefig(path)


def _draw(above: Any, below: Any, runs: Sequence[Run], name: str, look: dict[str, str]) -> None:
    regrets = _padded([100.0 * simple_regret(run) / run.optimum for run in runs])
    evaluations = np.arange(1, regrets.shape[1] + 1)
    low, high = np.quantile(regrets, [0.25, 0.75], axis=0)
    above.plot(evaluations, regrets.mean(axis=0), label=name, **look)
    above.fill_between(evaluations, low, high, color=look["color"], alpha=0.15, lw=0)
    floor = 100.0 * REGRET_FLOOR / runs[0].optimum
    below.step(evaluations, (regrets <= floor).mean(axis=0), where="post", **look)


def _label(above: Any, below: Any, problem: str, runs: Sequence[Run], *, is_first: bool) -> None:
    above.set_title(f"{problem}, {len({run.key.seed for run in runs})} seeds")
    above.set_yscale("symlog", linthresh=_LINEAR_BELOW_PERCENT)
    above.set_ylim(0.0, 100.0)
    above.set_yticks([0, 0.5, 1, 2, 5, 10, 20, 50, 100], minor=False)
    above.set_yticklabels(["0", "0.5", "1", "2", "5", "10", "20", "50", "100"])
    below.set_ylim(-0.03, 1.03)
    below.set_xlabel("evaluations (shaded: initial design)")
    n_initial = min(run.n_initial for run in runs)
    for axis in (above, below):
        axis.axvspan(0, n_initial, color="0.92", lw=0, zorder=0)
        axis.set_xlim(1, max(len(run) for run in runs))
        axis.grid(color="0.88", lw=0.6)
        axis.spines[["top", "right"]].set_visible(False)
    if is_first:
        above.set_ylabel("simple regret (% of the optimum)\nmean, band: quartiles")
        below.set_ylabel("share of runs that\nfound the optimum")
        above.legend(frameon=False)


def _padded(curves: Sequence[FloatArray]) -> FloatArray:
    """Curves (n_runs, t) of one length: a run that ended early keeps its last value."""
    length = max(len(curve) for curve in curves)
    return np.array([np.pad(curve, (0, length - len(curve)), mode="edge") for curve in curves])
