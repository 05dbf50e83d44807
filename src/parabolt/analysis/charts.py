"""Interactive charts of findings, with plotly (extra `report`); each function gives one figure.

A trace's `meta` says what the page's script needs: the `method` that a click hides, the `axis` or
`kind` that a choice shows, and `path` for the traces that it draws a search into.
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

import numpy as np

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

try:
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots
except ImportError as error:
    raise MissingDependencyError.of("plotly", "report") from error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from parabolt.analysis.curves import Axis, Curve
    from parabolt.analysis.findings import BoardFindings
    from parabolt.analysis.landscape import Grid, Landscape
    from parabolt.analysis.leaderboard import Score
    from parabolt.analysis.statistics import Profile, Ranking
    from parabolt.analysis.tradeoff import Tradeoff
    from parabolt.outcome import FloatArray, IntArray

#: Regrets below this, in percent of the optimum, are drawn here on the logarithmic axis.
FLOOR_PERCENT = 0.01

#: With more optimizers than this, the bands of quartiles hide each other and are left out.
MAX_BANDS = 6

#: The least end of an axis of factors, so that it never has one value.
LEAST_FACTOR = 2.0

_WIDTH = 2
#: Title of each axis that a curve may be over.
AXIS_TITLES: dict[Axis, str] = {
    "evaluations": "evaluations, initial design included",
    "hours": "hours on the simulated clock",
    "GPU-hours": "GPU-hours of trials",
}
_NEUTRAL = "#808080"
#: Mark and pattern of lines of candidates that don't run, by ending; of others the last one.
_ENDING_LOOKS = {OUT_OF_MEMORY: ("x-thin", "dot"), UNKNOWN_FAILURE: ("circle-open", "dash")}
_OTHER_ENDING = ("square-open", "longdash")
_CLASS_LOOKS: dict[str, dict[str, Any]] = {
    "other feasible": {"color": "#0b9de6", "width": 0.4},
    "best 10 %": {"color": "#6a4dff", "width": 1.2},
    "best 1 %": {"color": "#d20b4d", "width": 2.5},
}


def curve_chart(found: BoardFindings) -> Any:
    """Median simple regret with quartiles, and share of runs that found the optimum."""
    figure = make_subplots(
        rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.06, row_heights=[0.6, 0.4]
    )
    has_bands = len(found.runs) <= MAX_BANDS
    for axis, curves in found.curves.items():
        for name, curve in curves.items():
            for row, trace in _curve_traces(name, curve, has_bands=has_bands):
                trace.meta = {"method": name, "axis": axis}
                trace.visible = axis == "evaluations"
                figure.add_trace(trace, row=row, col=1)
    figure.update_xaxes(title=AXIS_TITLES["evaluations"], row=2, col=1)
    ticks = [FLOOR_PERCENT, 0.1, 0.5, 1, 2, 5, 10, 20, 50, 100]
    figure.update_yaxes(
        type="log", row=1, tickvals=ticks, ticktext=[f"≤ {ticks[0]:g}", *map(str, ticks[1:])],
        range=[np.log10(FLOOR_PERCENT) - 0.1, 2.05], title="simple regret, % of optimum",
    )  # fmt: skip
    figure.update_yaxes(range=[-0.03, 1.03], row=2, title="share that found it")
    hover = "x unified" if len(found.runs) <= MAX_BANDS else "closest"
    return _laid_out(figure, height=560, hovermode=hover)


def rank_chart(ranking: Ranking) -> Any:
    """Mean ranks; optimizers within the critical difference of the best are not told apart."""
    names, ranks = list(ranking.mean_ranks), list(ranking.mean_ranks.values())
    figure = go.Figure(_dots(names, ranks, "mean rank %{x:.2f}"))
    figure.add_vrect(
        x0=ranks[0], x1=ranks[0] + ranking.critical_difference, fillcolor=_NEUTRAL, opacity=0.2,
        line_width=0,
    )  # fmt: skip
    figure.update_xaxes(
        title=f"mean rank over {count(ranking.n_seeds, 'seed')}",
        range=[0.8, max(len(names), ranks[0] + ranking.critical_difference) + 0.2],
    )
    return _named_rows(figure, names)


def outcome_chart(scores: Sequence[Score]) -> Any:
    """Share of evaluations after the initial design that did not run.

    Those that ran out of memory, then, hatched, those that failed and it is not known of what.
    """
    names = [score.optimizer for score in scores]
    figure = go.Figure()
    for ending, pattern, shares in (
        (OUT_OF_MEMORY, "", [100.0 * score.oom_share for score in scores]),
        (UNKNOWN_FAILURE, "/", [100.0 * score.failed_share for score in scores]),
    ):
        for row, (name, share) in enumerate(zip(names, shares, strict=True)):
            if ending == UNKNOWN_FAILURE and not share > 0.0:
                continue
            figure.add_trace(
                go.Bar(
                    y=[row], x=[share], orientation="h", name=_plain(name), width=0.8,
                    meta={"method": name}, showlegend=False,
                    marker={"color": method_style(name).color, "pattern": {"shape": pattern}},
                    hovertemplate=f"%{{x:.1f}} % {ending}",
                )
            )  # fmt: skip
    largest = max((100.0 * (s.oom_share + s.failed_share) for s in scores), default=0.0)
    end = 1.05 * largest if np.isfinite(largest) else 100.0
    figure.update_xaxes(title="evaluations that did not run, %", range=[0, max(end, 1.0)])
    figure.update_layout(barmode="stack")
    return _named_rows(figure, names)


def profile_chart(profile: Profile) -> Any:
    """Performance profile: share of runs that came close within a factor of the fastest."""
    end = max(LEAST_FACTOR, 1.05 * float(profile.factor[-1]))
    figure = go.Figure(
        [
            go.Scatter(
                x=[*profile.factor.tolist(), end], y=[*share.tolist(), float(share[-1])],
                name=_plain(name), meta={"method": name}, mode="lines", showlegend=False,
                line={**_line(name), "shape": "hv"}, hovertemplate="within %{x:.2f} x: %{y:.0%}",
            )
            for name, share in profile.share.items()
        ]
    )  # fmt: skip
    figure.update_xaxes(
        type="log", title="factor of the fewest evaluations",
        range=[0.0, float(np.log10(end))],
        tickvals=[1, 1.5, 2, 3, 5, 10, 20, 50, 100],
    )  # fmt: skip
    figure.update_yaxes(
        range=[-0.03, 1.03], title=f"share within {100 * profile.within:g} % of optimum"
    )
    return _laid_out(figure, height=380)


def tradeoff_chart(landscape: Landscape, tradeoff: Tradeoff) -> Any:
    """Throughput against peak memory of every candidate, and the Pareto front."""
    outcomes = landscape.outcomes
    rows = np.flatnonzero(outcomes.is_feasible & np.isfinite(outcomes.peak_memory_gib))
    hover = "%{text}<br>%{y:.4g} iterations/s<br>%{x:.4g} GiB<extra></extra>"
    figure = go.Figure(
        [
            go.Scatter(
                x=outcomes.peak_memory_gib[rows].tolist(), y=outcomes.throughput[rows].tolist(),
                text=[landscape.text(row) for row in rows.tolist()], mode="markers",
                name="candidates",
                marker={"size": 5, "color": _NEUTRAL, "opacity": 0.5}, hovertemplate=hover,
            ),
            go.Scatter(
                x=[*outcomes.peak_memory_gib[tradeoff.front].tolist(), tradeoff.capacity_gib],
                y=[*outcomes.throughput[tradeoff.front].tolist(),
                   float(outcomes.throughput[tradeoff.front[-1]])],
                text=[*(landscape.text(row) for row in tradeoff.front), "memory of a GPU"],
                mode="lines+markers", name="Pareto front", hovertemplate=hover,
                line={"color": _CLASS_LOOKS["best 1 %"]["color"], "width": 2, "shape": "hv"},
            ),
            go.Scatter(
                x=[tradeoff.capacity_gib], y=[0.0], mode="markers", name="reference point",
                marker={"symbol": "x", "size": 9, "color": _NEUTRAL}, cliponaxis=False,
                hovertemplate="reference point<br>0 iterations/s, %{x:.4g} GiB<extra></extra>",
            ),
        ]
    )  # fmt: skip
    figure.update_xaxes(title="peak memory, GiB", rangemode="tozero")
    figure.update_yaxes(title="iterations/s", rangemode="tozero")
    return _laid_out(figure, height=420, showlegend=True)


def volume_chart(tradeoff: Tradeoff) -> Any:
    """Median hypervolume found with each evaluation, in percent of the front's, with quartiles."""
    figure = go.Figure()
    for name, curve in tradeoff.curves.items():
        at = np.arange(1.0, len(curve.median) + 1.0)
        if len(tradeoff.curves) <= MAX_BANDS:
            figure.add_trace(_band_trace(name, at, curve.lower, curve.upper))
        figure.add_trace(
            go.Scatter(
                x=at.tolist(), y=curve.median.tolist(), name=_plain(name), mode="lines",
                line=_line(name), showlegend=False, hovertemplate="%{y:.1f} %",
            )
        )  # fmt: skip
        for trace in figure.data[-2:]:
            trace.meta = trace.meta or {"method": name}
    figure.update_xaxes(title=AXIS_TITLES["evaluations"])
    figure.update_yaxes(title="hypervolume, % of the front's", range=[0, 102])
    return _laid_out(figure, height=420, hovermode="x unified")


def heat_map(landscape: Landscape) -> Any:
    """Throughput or memory of every candidate; a cross does not run, blank is no candidate."""
    places, outcomes = grid(landscape), landscape.outcomes
    memory = np.where(outcomes.is_feasible, outcomes.peak_memory_gib, np.nan)
    figure = go.Figure()
    for kind, values, unit in (
        ("throughput", outcomes.throughput, "iterations/s"),
        ("memory", memory, "peak memory, GiB"),
    ):
        figure.add_trace(
            go.Heatmap(
                z=_nullable(picture_of(places, values)),
                text=_cell_texts(landscape, places),
                name=unit, meta={"kind": kind}, visible=kind == "throughput",
                colorscale="Viridis", hoverongaps=False, xgap=1, ygap=1,
                colorbar={"title": {"text": unit, "side": "top"}, "orientation": "h",
                          "y": 1.0, "yanchor": "bottom", "thickness": 10, "len": 0.9},
                hovertemplate="%{text}<br>%{z:.4g} " + unit + "<extra></extra>",
            )
        )  # fmt: skip
    best = landscape.best
    for ending, rows in landscape.endings().items():
        symbol, _ = _ENDING_LOOKS.get(ending, _OTHER_ENDING)
        figure.add_trace(
            go.Scatter(
                x=places.x[rows].tolist(), y=places.y[rows].tolist(), mode="markers", name=ending,
                marker={"symbol": symbol, "size": 5, "color": _NEUTRAL,
                        "line": {"width": 1, "color": _NEUTRAL}},
                text=[f"{landscape.text(row)}<br>{ending}" for row in rows.tolist()],
                hovertemplate="%{text}<extra></extra>",
            )
        )  # fmt: skip
    figure.add_trace(_path_trace(9))
    figure.add_trace(
        go.Scatter(
            x=[int(places.x[best])], y=[int(places.y[best])], mode="markers", name="optimum",
            hovertemplate=f"optimum<br>{landscape.text(best)}<extra></extra>",
            marker={"symbol": "star", "size": 15, "color": "#d20b4d",
                    "line": {"width": 1, "color": "#ffffff"}},
        )
    )  # fmt: skip
    font = {"size": 9, "family": "ui-monospace, monospace"}
    for update, labels, knobs in (
        (figure.update_xaxes, places.columns, places.column_knobs),
        (figure.update_yaxes, places.rows, places.row_knobs),
    ):
        update(
            tickvals=list(range(len(labels))), ticktext=labels, tickfont=font, showgrid=False,
            range=[-0.6, len(labels) - 0.4], title=" ".join(knobs),
        )  # fmt: skip
    figure.update_xaxes(tickangle=-90)
    return _laid_out(figure, height=190 + 13 * len(places.rows), margin={"t": 80})


def parallel_coordinates(landscape: Landscape) -> Any:
    """Every candidate as a line over its knobs, best ones on top; lines of one size lie apart."""
    where = heights(landscape)
    figure = go.Figure(
        [_lines(landscape, where, label, rows) for label, rows in landscape.classes()]
    )
    path = _path_trace(12)
    path.update(
        mode="lines+text",
        textposition="middle right",
        textfont={"color": "#cc853d", "weight": "bold"},
        line={"color": "#cc853d", "width": 2},
    )
    figure.add_trace(path)
    names = [axis.knob.name for axis in landscape.axes]
    for position, axis in enumerate(landscape.axes):
        for number, word in enumerate(axis.words):
            figure.add_annotation(
                x=position, y=number / (len(axis.words) - 1), text=_plain(word), showarrow=False,
                xanchor="right", xshift=-3, font={"size": 11},
            )  # fmt: skip
    figure.update_xaxes(tickvals=list(range(len(landscape.axes))), ticktext=names,
                        range=[-0.35, len(landscape.axes) - 0.5], showgrid=True)  # fmt: skip
    figure.update_yaxes(visible=False, range=[-0.2, 1.2])
    return _laid_out(figure, height=520, showlegend=True, margin={"l": 10})


def _curve_traces(name: str, curve: Curve, *, has_bands: bool) -> Iterator[tuple[int, Any]]:
    shown = {"mode": "lines", "name": _plain(name), "showlegend": False}
    lower, middle, upper = (
        np.maximum(y, FLOOR_PERCENT)
        for y in (curve.regret.lower, curve.regret.median, curve.regret.upper)
    )
    if has_bands:
        yield 1, _band_trace(name, curve.at, lower, upper)
    shape = "linear" if curve.axis == "evaluations" else "hv"
    yield 1, go.Scatter(
        x=curve.at.tolist(), y=middle.tolist(), customdata=curve.regret.median.tolist(),
        line={**_line(name), "shape": shape}, hovertemplate="%{customdata:.2f} %", **shown,
    )  # fmt: skip
    yield 2, go.Scatter(
        x=curve.at.tolist(), y=curve.found.tolist(), line={**_line(name), "shape": "hv"},
        hovertemplate="%{y:.0%}", **shown,
    )  # fmt: skip


def _band_trace(name: str, at: FloatArray, lower: FloatArray, upper: FloatArray) -> Any:
    return go.Scatter(
        x=np.concatenate([at, at[::-1]]).tolist(), y=np.concatenate([upper, lower[::-1]]).tolist(),
        fill="toself", mode="none", name=_plain(name), fillcolor=method_style(name).color,
        opacity=0.15, hoverinfo="skip", showlegend=False,
    )  # fmt: skip


def _dots(names: Sequence[str], values: Sequence[float], hover: str) -> list[Any]:
    return [
        go.Scatter(
            x=[value], y=[row], mode="markers", name=_plain(name), showlegend=False,
            meta={"method": name}, marker={"size": 11, "color": method_style(name).color},
            hovertemplate=hover,
        )
        for row, (name, value) in enumerate(zip(names, values, strict=True))
    ]  # fmt: skip


def _named_rows(figure: Any, names: Sequence[str]) -> Any:
    """A figure with a row for each optimizer, the first on top."""
    figure.update_yaxes(
        tickvals=list(range(len(names))), ticktext=[_plain(short_label(name)) for name in names],
        range=[len(names) - 0.4, -0.6], automargin=True,
    )  # fmt: skip
    return _laid_out(figure, height=110 + 24 * len(names))


def _path_trace(size: int) -> Any:
    """An empty trace that the page's script draws a search into."""
    return go.Scatter(
        x=[], y=[], text=[], mode="markers+text", name="search", meta={"path": True},
        textfont={"size": size, "color": "#000000"}, connectgaps=False, showlegend=False,
        marker={"size": size + 5, "color": "#ffffff", "line": {"width": 1, "color": "#000000"}},
        hovertemplate="%{hovertext}<extra></extra>", cliponaxis=False,
    )  # fmt: skip


def _lines(landscape: Landscape, where: FloatArray, label: str, rows: IntArray) -> Any:
    """One trace for many lines, parted by gaps."""
    n, d = len(rows), len(landscape.axes)
    x = np.tile(np.append(np.arange(d, dtype=np.float64), np.nan), n)
    y = np.hstack([where[rows], np.full((n, 1), np.nan)]).ravel()
    is_told = label.startswith("best")
    texts = [
        f"{landscape.text(row)}<br>{landscape.outcomes.throughput[row]:.4g} iterations/s"
        for row in rows
    ]
    return go.Scatter(
        x=_nullable(x), y=_nullable(np.round(y, 4)), mode="lines", name=f"{label} ({n})",
        line=_CLASS_LOOKS.get(label) or _ending_line(label), opacity=1.0 if is_told else 0.5,
        connectgaps=False,
        text=np.repeat(texts, d + 1).tolist() if is_told else None,
        hovertemplate="%{text}<extra></extra>" if is_told else None,
        hoverinfo=None if is_told else "skip",
    )  # fmt: skip


def _ending_line(ending: str) -> dict[str, Any]:
    _, dash = _ENDING_LOOKS.get(ending, _OTHER_ENDING)
    return {"color": _NEUTRAL, "dash": dash, "width": 0.6}


def _cell_texts(landscape: Landscape, places: Grid) -> list[list[str]]:
    texts = [[""] * len(places.columns) for _ in places.rows]
    for row, (x, y) in enumerate(zip(places.x.tolist(), places.y.tolist(), strict=True)):
        texts[y][x] = landscape.text(row)
    return texts


def _nullable(values: FloatArray) -> Any:
    """Values as lists, None for NaN, which JSON doesn't have."""
    shown = values.astype(object)
    shown[np.isnan(values)] = None
    return shown.tolist()


def _line(name: str) -> dict[str, Any]:
    style = method_style(name)
    dash = ",".join(f"{_WIDTH * length:g}px" for length in style.pattern) or "solid"
    return {"color": style.color, "dash": dash, "width": _WIDTH}


def _plain(text: str) -> str:
    """A name that plotly shows as it is: tags and formulas in texts would be its own."""
    return html.escape(text, quote=False).replace("$", "&#36;")


def _laid_out(
    figure: Any,
    *,
    height: int,
    hovermode: str = "closest",
    showlegend: bool = False,
    margin: Mapping[str, int] | None = None,
) -> Any:
    """The look that all charts share; colours of ink and grid are those of the page's theme."""
    figure.update_layout(
        height=height,
        hovermode=hovermode,
        showlegend=showlegend,
        margin={"l": 60, "r": 10, "t": 20, "b": 50, **(margin or {})},
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0},
        hoverlabel={"namelength": -1},
    )
    return figure
