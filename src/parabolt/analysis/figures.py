"""Static figures of runs for papers and terminals, with matplotlib (extra `plot`)."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from parabolt.analysis.curves import regret_curve, success_curve
from parabolt.analysis.metrics import group_runs
from parabolt.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from parabolt.experiments.run import Run

#: Okabe and Ito's colours, distinct for the colour-blind; line styles keep them apart in grey.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "--", "-.", ":")

#: With more optimizers than this, the bands of quartiles hide each other.
MAX_BANDS = 6

#: Below this a regret, in percent of the optimum, is drawn on a linear axis, so that 0 has a place.
_LINEAR_BELOW_PERCENT = 1.0


def style_of(number: int) -> tuple[str, str]:
    """Colour and line style of the optimizer with this number; 28 are told apart."""
    return COLORS[number % len(COLORS)], STYLES[number % len(STYLES)]


def draw_curves(runs: Sequence[Run], form: str) -> bytes:
    """Draws regret and success against evaluations, a column per problem.

    Above, the mean simple regret in percent of the optimum, with the quartiles of the runs as a
    band for up to six optimizers; below, the share of runs that have evaluated the optimum.

    Args:
        runs: Runs, at least one.
        form: `png`, `pdf` or `svg`.

    Returns:
        The content of a file of that form.

    Raises:
        MissingDependencyError: If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError.of("matplotlib", "plot") from error
    problems = group_runs(runs)
    names = list(dict.fromkeys(run.key.optimizer for run in runs))
    figure = Figure(figsize=(4.6 * len(problems) + 0.6, 5.6), layout="constrained", dpi=150)
    has_bands = len(names) <= MAX_BANDS
    axes = figure.subplots(2, len(problems), sharex="col", squeeze=False, height_ratios=[3, 2])
    for column, (problem, groups) in enumerate(problems.items()):
        above, below = axes[0][column], axes[1][column]
        for name, group in groups.items():
            color, style = style_of(names.index(name))
            curve = regret_curve(group)
            look = {"color": color, "ls": style}
            above.plot(curve.evaluation, curve.mean, label=name, **look)
            if has_bands:
                above.fill_between(
                    curve.evaluation, curve.lower, curve.upper, color=color, alpha=0.15, lw=0
                )
            below.step(curve.evaluation, success_curve(group), where="post", **look)
        _label(above, below, problem, [r for group in groups.values() for r in group])
    what = "mean, band: quartiles" if has_bands else "mean"
    axes[0][0].set_ylabel(f"simple regret (% of the optimum)\n{what}")
    axes[1][0].set_ylabel("share of runs that\nfound the optimum")
    figure.legend(
        *axes[0][0].get_legend_handles_labels(), loc="outside lower center", frameon=False,
        ncols=min(len(names), 4 * len(problems)), fontsize="small",
    )  # fmt: skip
    content = io.BytesIO()
    figure.savefig(content, format=form)
    return content.getvalue()


def _label(above: Any, below: Any, problem: str, runs: Sequence[Run]) -> None:
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
