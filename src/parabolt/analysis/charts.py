"""Interactive charts of runs, with plotly (extra `report`); each function gives one figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.analysis.curves import regret_curve, success_curve
from parabolt.analysis.figures import MAX_BANDS, style_of
from parabolt.analysis.metrics import group_runs, oom_share
from parabolt.analysis.statistics import performance_profile
from parabolt.errors import MissingDependencyError

try:
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots
except ImportError as error:
    raise MissingDependencyError.of("plotly", "report") from error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from parabolt.analysis.statistics import Ranking
    from parabolt.experiments.run import Run

_DASHES = {"-": "solid", "--": "dash", "-.": "dashdot", ":": "dot"}

#: Regrets below this, in percent of the optimum, are drawn here on the logarithmic axis.
FLOOR_PERCENT = 0.01

_BAND_OPACITY = 0.12


def plain_layout(figure: Any, *, height: int) -> Any:
    """The look that all charts share."""
    figure.update_layout(
        height=height,
        template="simple_white",
        font={"family": "system-ui, sans-serif", "size": 13},
        margin={"l": 70, "r": 20, "t": 50, "b": 55},
        legend={"groupclick": "togglegroup"},
        hoverlabel={"namelength": -1},
    )
    return figure


def curve_chart(runs: Sequence[Run]) -> Any:
    """Median simple regret with quartiles, and share of runs that found the optimum."""
    problems = group_runs(runs)
    names = list(dict.fromkeys(run.key.optimizer for run in runs))
    figure = make_subplots(
        rows=2, cols=len(problems), shared_xaxes=True, vertical_spacing=0.08,
        row_heights=[0.6, 0.4], subplot_titles=list(problems),
    )  # fmt: skip
    for column, groups in enumerate(problems.values(), start=1):
        for name, group in groups.items():
            look = _look(names.index(name))
            for row, trace in enumerate(_curves(name, group, look), start=1):
                for part in trace:
                    part.showlegend = row == 1 and column == 1 and part.mode == "lines"
                    figure.add_trace(part, row=row, col=column)
        figure.update_xaxes(title="evaluations, initial design included", row=2, col=column)
    ticks = [FLOOR_PERCENT, 0.1, 0.5, 1, 2, 5, 10, 20, 50, 100]
    figure.update_yaxes(
        type="log", row=1, tickvals=ticks, ticktext=[f"≤ {ticks[0]:g}", *map(str, ticks[1:])],
        range=[np.log10(FLOOR_PERCENT) - 0.1, 2.0],
    )  # fmt: skip
    figure.update_layout(hovermode="x unified")
    figure.update_yaxes(title="simple regret, % of optimum", row=1, col=1)
    figure.update_yaxes(title="share that found it", row=2, col=1)
    figure.update_yaxes(range=[-0.03, 1.03], row=2)
    if len(names) > MAX_BANDS:
        _bands_on_demand(figure)
    return plain_layout(figure, height=max(620, 200 + 30 * len(names)))


def _bands_on_demand(figure: Any) -> None:
    bands = [number for number, trace in enumerate(figure.data) if trace.fill == "toself"]
    figure.update_traces(opacity=0.0, selector={"fill": "toself"})
    buttons = [
        {"label": label, "method": "restyle", "args": [{"opacity": opacity}, bands]}
        for label, opacity in (("medians", 0.0), ("with quartiles", _BAND_OPACITY))
    ]
    figure.update_layout(
        updatemenus=[
            {"type": "buttons", "direction": "right", "x": 0, "xanchor": "left", "y": 1.1,
             "yanchor": "bottom", "buttons": buttons}
        ]
    )  # fmt: skip


def _curves(name: str, runs: Sequence[Run], look: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    curve = regret_curve(runs)
    low, middle, high = (
        np.maximum(y, FLOOR_PERCENT) for y in (curve.lower, curve.median, curve.upper)
    )
    around = np.concatenate([curve.evaluation, curve.evaluation[::-1]])
    band = go.Scatter(
        x=around, y=np.concatenate([high, low[::-1]]), fill="toself", mode="none", name=name,
        fillcolor=look["color"], opacity=_BAND_OPACITY, legendgroup=name, hoverinfo="skip",
    )  # fmt: skip
    line = go.Scatter(
        x=curve.evaluation, y=middle, customdata=curve.median, mode="lines", name=name,
        line=look, legendgroup=name,
        hovertemplate="median regret %{customdata:.2f} %",
    )  # fmt: skip
    share = go.Scatter(
        x=curve.evaluation, y=success_curve(runs), mode="lines", name=name,
        line={**look, "shape": "hv"}, legendgroup=name,
        hovertemplate="found by %{y:.0%} of the runs",
    )  # fmt: skip
    return [band, line], [share]


def rank_chart(ranking: Ranking) -> Any:
    """Mean ranks; optimizers within the critical difference of the best are not told apart."""
    names = list(ranking.mean_ranks)
    ranks = list(ranking.mean_ranks.values())
    figure = go.Figure(
        go.Scatter(
            x=ranks, y=names, mode="markers", marker={"size": 11, "color": "#000000"},
            hovertemplate="%{y}: mean rank %{x:.2f}", showlegend=False,
        )
    )  # fmt: skip
    figure.add_vrect(
        x0=ranks[0], x1=ranks[0] + ranking.critical_difference, fillcolor="#999999", opacity=0.2,
        line_width=0, annotation_text="critical difference from the best",
        annotation_position="bottom right",
    )  # fmt: skip
    figure.update_xaxes(title=f"mean rank by final regret over {ranking.n_blocks} problems x seeds")
    figure.update_yaxes(autorange="reversed")
    return plain_layout(figure, height=160 + 26 * len(names))


def outcome_chart(runs: Sequence[Run]) -> Any:
    """Share of out-of-memory evaluations after the initial design."""
    problems = group_runs(runs)
    figure = make_subplots(rows=1, cols=len(problems), subplot_titles=list(problems))
    for column, groups in enumerate(problems.values(), start=1):
        shares = {n: 100.0 * float(np.mean([oom_share(r) for r in g])) for n, g in groups.items()}
        figure.add_trace(
            go.Bar(
                y=list(shares), x=list(shares.values()), orientation="h", showlegend=False,
                marker={"color": "#777777"}, hovertemplate="%{y}: %{x:.1f} % out of memory",
            ),
            row=1, col=column,
        )  # fmt: skip
        figure.update_xaxes(title="out-of-memory evaluations, %", row=1, col=column)
    figure.update_yaxes(autorange="reversed")
    return plain_layout(figure, height=150 + 24 * max(len(g) for g in problems.values()))


def profile_chart(runs: Sequence[Run], *, within: float = 0.01) -> Any:
    """Performance profile: share of blocks solved within a factor of the fastest."""
    profile = performance_profile(runs, within=within)
    figure = go.Figure(
        [
            go.Scatter(
                x=profile.factor, y=share, name=name, mode="lines",
                line={**_look(number), "shape": "hv"},
                hovertemplate="within %{x:.2f} x: %{y:.0%}",
            )
            for number, (name, share) in enumerate(profile.share.items())
        ]
    )  # fmt: skip
    figure.update_xaxes(type="log", title="factor of the fewest evaluations of any optimizer")
    figure.update_yaxes(range=[-0.03, 1.03], title=f"share within {100 * within:g} % of optimum")
    return plain_layout(figure, height=max(380, 120 + 20 * len(profile.share)))


def _look(number: int) -> dict[str, Any]:
    color, style = style_of(number)
    return {"color": color, "dash": _DASHES[style], "width": 2}
