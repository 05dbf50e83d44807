"""Static figures of findings for papers, with matplotlib (extra `plot`).

They show what the charts of the page show: the same arrays, in the same colours.
"""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.analysis.curves import AXES
from parabolt.analysis.landscape import (
    OUT_OF_MEMORY,
    UNKNOWN_FAILURE,
    grid,
    heights,
    picture_of,
)
from parabolt.analysis.method_style import method_style, short_label
from parabolt.analysis.words import count
from parabolt.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from parabolt.analysis.curves import Axis
    from parabolt.analysis.findings import BoardFindings, Findings
    from parabolt.analysis.landscape import Landscape
    from parabolt.analysis.leaderboard import Score
    from parabolt.analysis.statistics import Profile, Ranking
    from parabolt.analysis.tradeoff import Tradeoff

#: With more optimizers than this, the bands of quartiles hide each other and are left out.
MAX_BANDS = 6

#: Below this a regret, in percent of the optimum, is drawn on a linear axis, so that 0 has a place.
_LINEAR_BELOW_PERCENT = 0.01

_REGRET_TICKS = [0, 0.01, 0.1, 0.5, 1, 2, 5, 10, 20, 50, 100]
_FACTOR_TICKS = [1, 1.5, 2, 3, 5, 10, 20, 50, 100]
_NEUTRAL = "#808080"
#: Mark and pattern of lines of candidates that don't run, by ending; of others the last one.
_ENDING_LOOKS = {OUT_OF_MEMORY: ("x", ":"), UNKNOWN_FAILURE: ("o", "--")}
_OTHER_ENDING = ("s", "-.")
_MARK_NAMES = {"x": "cross", "o": "ring", "s": "square"}
_CLASS_LOOKS: dict[str, dict[str, Any]] = {
    "other feasible": {"color": "#0b9de6", "lw": 0.4, "alpha": 0.5},
    "best 10 %": {"color": "#6a4dff", "lw": 0.8},
    "best 1 %": {"color": "#d20b4d", "lw": 1.6},
}


def draw_figures(findings: Findings, form: str) -> Iterator[tuple[str, bytes]]:
    """Every figure of the findings, by name, as the content of a file.

    Args:
        findings: What is drawn.
        form: `png`, `pdf` or `svg`.

    Raises:
        MissingDependencyError: If matplotlib is not installed.
    """
    try:
        from matplotlib import rc_context
    except ImportError as error:
        raise MissingDependencyError.of("matplotlib", "plot") from error
    # Names are data: no dollar sign in them begins a formula. Identifiers in SVG are fixed.
    with rc_context({"text.parse_math": False, "svg.hashsalt": "parabolt"}):
        for name, figure in make_figures(findings):
            yield name, _content(figure, form)


def make_figures(findings: Findings) -> Iterator[tuple[str, Any]]:
    """Every figure of the findings, by name."""
    boards = findings.boards
    for axis in AXES:
        if all(axis in found.curves for found in boards):
            name = "curves" if axis == "evaluations" else f"curves-{axis.lower()}"
            yield name, _curve_figure(findings, axis)
    if findings.ranking:
        yield "ranks", _rank_figure(findings.ranking)
    yield "outcomes", _outcome_figure(boards)
    yield "profile", _profile_figure(findings.profile)
    for found in boards:
        if found.landscape and found.tradeoff:
            figure = _tradeoff_figure(found, found.landscape, found.tradeoff)
            yield f"tradeoff-{found.board.label}", figure
        if found.landscape and found.landscape.axes:
            yield f"landscape-{found.board.label}", _heat_figure(found, found.landscape)
            yield f"knobs-{found.board.label}", _knob_figure(found, found.landscape)


def _curve_figure(findings: Findings, axis: Axis) -> Any:
    """Median simple regret with quartiles above, share of runs that found the optimum below."""
    boards = findings.boards
    figure = _figure(4.6 * len(boards) + 0.6, 5.6)
    axes = figure.subplots(2, len(boards), sharex="col", squeeze=False, height_ratios=[3, 2])
    has_bands = len(findings.optimizers) <= MAX_BANDS
    for column, found in enumerate(boards):
        above, below = axes[0][column], axes[1][column]
        for name, curve in found.curves[axis].items():
            look, regret = _line(name), curve.regret
            steps = "default" if axis == "evaluations" else "steps-post"
            above.plot(curve.at, regret.median, label=_shown(name), drawstyle=steps, **look)
            if has_bands:
                above.fill_between(
                    curve.at, regret.lower, regret.upper, color=look["color"], alpha=0.15, lw=0,
                    step=None if axis == "evaluations" else "post",
                )  # fmt: skip
            below.step(curve.at, curve.found, where="post", **look)
        _label_curves(above, below, found, axis)
    what = "median, band: quartiles" if has_bands else "median"
    axes[0][0].set_ylabel(f"simple regret (% of the optimum)\n{what}")
    axes[1][0].set_ylabel("share of runs that\nfound the optimum")
    _add_legend(figure, axes[0])
    return figure


def _label_curves(above: Any, below: Any, found: BoardFindings, axis: Axis) -> None:
    failed = sum(score.n_failed for score in found.scores)
    more = f", {count(failed, 'run')} failed" if failed else ""
    above.set_title(f"{found.board.label}: {count(len(found.seeds), 'seed')}{more}")
    above.set_yscale("symlog", linthresh=_LINEAR_BELOW_PERCENT, linscale=0.3)
    above.set_ylim(0.0, 110.0)
    above.set_yticks(_REGRET_TICKS, minor=False)
    above.set_yticklabels([f"{tick:g}" for tick in _REGRET_TICKS])
    below.set_ylim(-0.03, 1.03)
    end = max(float(curve.at[-1]) for curve in found.curves[axis].values())
    is_counted = axis == "evaluations"
    below.set_xlabel("evaluations (shaded: initial design)" if is_counted else axis)
    n_initial = min(run.n_initial for group in found.runs.values() for run in group)
    below.locator_params("x", integer=is_counted)
    for part in (above, below):
        if is_counted:
            part.axvspan(0, n_initial, color="0.92", lw=0, zorder=0)
        part.set_xlim(1.0 if is_counted else 0.0, max(end, 2.0) if is_counted else end)
        _plain_axes(part)


def _rank_figure(ranking: Ranking) -> Any:
    """Mean ranks; grey is the critical difference from the best."""
    names, ranks = list(ranking.mean_ranks), list(ranking.mean_ranks.values())
    figure = _figure(5.6, 1.2 + 0.25 * len(names))
    axes = figure.subplots()
    end = ranks[0] + ranking.critical_difference
    axes.axvspan(ranks[0], end, color=_NEUTRAL, alpha=0.2, lw=0)
    axes.scatter(ranks, range(len(names)), c=[method_style(name).color for name in names])
    axes.set_yticks(range(len(names)), [short_label(name) for name in names])
    axes.invert_yaxis()
    axes.set_xlim(0.8, max(len(names), end) + 0.2)
    axes.set_xlabel(f"mean rank over {count(ranking.n_seeds, 'seed')}; grey: critical difference")
    _plain_axes(axes)
    return figure


def _outcome_figure(boards: Sequence[BoardFindings]) -> Any:
    """Share of evaluations after the initial design that did not run."""
    n_rows = max(len(found.scores) for found in boards)
    figure = _figure(4.2 * len(boards) + 0.6, 1.2 + 0.25 * n_rows)
    for found, axes in zip(boards, figure.subplots(1, len(boards), squeeze=False)[0], strict=True):
        _draw_outcomes(axes, found.scores)
        axes.set_title(found.board.label)
    return figure


def _draw_outcomes(axes: Any, scores: Sequence[Score]) -> None:
    names = [score.optimizer for score in scores]
    colors = [method_style(name).color for name in names]
    oom, failed = (
        np.array([100.0 * getattr(score, share) for score in scores])
        for share in ("oom_share", "failed_share")
    )
    axes.barh(range(len(names)), oom, color=colors)
    axes.set_xlabel("out-of-memory evaluations, %")
    if (failed > 0.0).any():
        axes.barh(range(len(names)), failed, left=oom, color=colors, hatch="////", edgecolor="w")
        axes.set_xlabel("did not run, % (hatched: failed, memory or crash)")
    axes.set_yticks(range(len(names)), [short_label(name) for name in names])
    axes.invert_yaxis()
    axes.set_xlim(0.0, max([1.05 * s for s in oom + failed if np.isfinite(s)] + [1.0]))
    _plain_axes(axes)


def _profile_figure(profile: Profile) -> Any:
    """Share of runs that came close within a factor of the fewest evaluations."""
    figure = _figure(5.6, 4.0)
    axes = figure.subplots()
    end = max(2.0, 1.05 * float(profile.factor[-1]))
    for name, share in profile.share.items():
        at, shown = np.append(profile.factor, end), np.append(share, share[-1])
        axes.step(at, shown, where="post", label=_shown(name), **_line(name))
    axes.set_xscale("log")
    ticks = [tick for tick in _FACTOR_TICKS if tick <= end]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlim(1.0, end)
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel("factor of the fewest evaluations of any optimizer")
    axes.set_ylabel(f"share within {100 * profile.within:g} % of the optimum")
    _plain_axes(axes)
    _add_legend(figure, [axes])
    return figure


def _tradeoff_figure(found: BoardFindings, landscape: Landscape, tradeoff: Tradeoff) -> Any:
    """Candidates and Pareto front on the left, hypervolume found on the right."""
    figure = _figure(9.6, 4.2)
    left, right = figure.subplots(1, 2)
    outcomes, front = landscape.outcomes, tradeoff.front
    rows = np.flatnonzero(outcomes.is_feasible & np.isfinite(outcomes.peak_memory_gib))
    left.scatter(outcomes.peak_memory_gib[rows], outcomes.throughput[rows], s=8, c=_NEUTRAL,
                 alpha=0.5, lw=0)  # fmt: skip
    at = np.append(outcomes.peak_memory_gib[front], tradeoff.capacity_gib)
    values = np.append(outcomes.throughput[front], outcomes.throughput[front[-1]])
    left.step(at, values, where="post", c=_CLASS_LOOKS["best 1 %"]["color"], marker="o", ms=3)
    left.plot([tradeoff.capacity_gib], [0.0], "x", c=_NEUTRAL, clip_on=False)
    left.set_xlim(0.0)
    left.set_ylim(0.0)
    left.set_xlabel("peak memory, GiB (cross: reference point)")
    left.set_ylabel("iterations/s")
    left.set_title(f"{found.board.label}: Pareto front")
    for name, curve in tradeoff.curves.items():
        at, look = np.arange(1, len(curve.median) + 1), _line(name)
        right.plot(at, curve.median, label=_shown(name), **look)
        if len(tradeoff.curves) <= MAX_BANDS:
            right.fill_between(at, curve.lower, curve.upper, color=look["color"], alpha=0.15, lw=0)
    right.set_ylim(0.0, 102.0)
    right.set_xlabel("evaluations")
    right.set_ylabel("hypervolume found (% of the front's)")
    for axes in (left, right):
        _plain_axes(axes)
    _add_legend(figure, [right])
    return figure


def _heat_figure(found: BoardFindings, landscape: Landscape) -> Any:
    """Throughput and memory of every candidate, marks where it does not run; blank is none."""
    places, outcomes = grid(landscape), landscape.outcomes
    width, height = 1.6 + 0.17 * len(places.columns), 1.9 + 0.15 * len(places.rows)
    figure = _figure(2 * width, height)
    memory = np.where(outcomes.is_feasible, outcomes.peak_memory_gib, np.nan)
    shown = ((outcomes.throughput, "iterations/s"), (memory, "peak memory, GiB"))
    endings, best = landscape.endings(), landscape.best
    marks = {ending: _ENDING_LOOKS.get(ending, _OTHER_ENDING)[0] for ending in endings}
    for axes, (values, unit) in zip(figure.subplots(1, 2), shown, strict=True):
        picture = axes.imshow(picture_of(places, values), origin="lower", aspect="auto")
        figure.colorbar(picture, ax=axes, location="top", label=unit, aspect=40, pad=0.01)
        for ending, rows in endings.items():
            axes.plot(places.x[rows], places.y[rows], marks[ending], c=_NEUTRAL, ms=3, mew=0.7,
                      mfc="none")  # fmt: skip
        axes.plot([places.x[best]], [places.y[best]], "*", c="#d20b4d", mec="white", ms=11)
        axes.set_xticks(range(len(places.columns)), places.columns, rotation=90, fontsize=6)
        axes.set_yticks(range(len(places.rows)), places.rows, fontsize=6)
        axes.set_xlabel(" ".join(places.column_knobs))
        axes.set_ylabel(" ".join(places.row_knobs))
    words = ["star: optimum", *(f"{_MARK_NAMES[m]}: {ending}" for ending, m in marks.items())]
    figure.suptitle(f"{found.board.label} ({', '.join(words)})")
    return figure


def _knob_figure(found: BoardFindings, landscape: Landscape) -> Any:
    """Every candidate as a line over its knobs, best ones on top."""
    figure = _figure(8.0, 5.0)
    axes, where = figure.subplots(), heights(landscape)
    for label, rows in landscape.classes():
        drawn = axes.plot(np.arange(len(landscape.axes)), where[rows].T, **_look(label))
        drawn[0].set_label(f"{label} ({len(rows)})")
    names = [axis.knob.name for axis in landscape.axes]
    for position, axis in enumerate(landscape.axes):
        for number, word in enumerate(axis.words):
            axes.annotate(
                word, (position, number / (len(axis.words) - 1)), xytext=(-3, 0),
                textcoords="offset points", ha="right", va="center", fontsize=8,
                bbox={"facecolor": "white", "alpha": 0.75, "lw": 0, "pad": 1},
            )  # fmt: skip
    axes.set_xticks(range(len(names)), names)
    axes.set_xlim(-0.35, len(landscape.axes) - 0.6)
    axes.set_yticks([])
    axes.set_title(f"{found.board.label}: every candidate")
    axes.grid(axis="x", color="0.88")
    axes.spines[["left", "right", "top"]].set_visible(False)
    _add_legend(figure, [axes])
    return figure


def _look(label: str) -> dict[str, Any]:
    """How the lines of a class of candidates look."""
    _, pattern = _ENDING_LOOKS.get(label, _OTHER_ENDING)
    of_ending = {"color": _NEUTRAL, "ls": pattern, "lw": 0.4, "alpha": 0.5}
    return _CLASS_LOOKS.get(label, of_ending)


def _figure(width: float, height: float) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", dpi=150)


def _content(figure: Any, form: str) -> bytes:
    content = io.BytesIO()
    no_date = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(content, format=form, metadata=no_date.get(form))
    return content.getvalue()


def _line(name: str) -> dict[str, Any]:
    style = method_style(name)
    return {"color": style.color, "lw": 1.6, "ls": (0, style.pattern) if style.pattern else "-"}


def _shown(name: str) -> str:
    """A name for a legend, which leaves out those that begin with an underscore."""
    return f" {short_label(name)}" if name.startswith("_") else short_label(name)


def _add_legend(figure: Any, axes: Sequence[Any]) -> None:
    """A legend below the figure, in as many columns as fit."""
    handles: dict[tuple[str, ...], Any] = {}
    for part in axes:
        for handle, label in zip(*part.get_legend_handles_labels(), strict=True):
            handles.setdefault((label, handle.get_color(), handle.get_linestyle()), handle)
    labels = [label for label, *_ in handles]
    width_in = 0.6 + 0.08 * max(map(len, labels))
    figure.legend(
        list(handles.values()), labels, loc="outside lower center", frameon=False,
        ncols=max(1, int(figure.get_figwidth() / width_in)), fontsize="small",
    )  # fmt: skip


def _plain_axes(axes: Any) -> None:
    axes.grid(color="0.88", lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
