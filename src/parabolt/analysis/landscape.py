"""The landscape of a problem: parallel coordinates and heat maps of its table, with plotly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.analysis.charts import plain_layout
from parabolt.errors import MissingDependencyError

try:
    import plotly.graph_objects as go
except ImportError as error:
    raise MissingDependencyError.of("plotly", "report") from error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from parabolt.experiments.run import Run
    from parabolt.outcome import FloatArray, IntArray, Outcomes
    from parabolt.problems.problem import Problem

#: Name of the trace that a run's path is drawn into; the page's script looks for it.
PATH = "path of the run"

#: Knobs that say how the GPUs are shared out; the others say how each share works.
_SHARES = ("dp", "tp", "pp", "cp")


def parallel_coordinates(problem: Problem) -> Any:
    """Every candidate as a line over its knobs: the best, the rest, and out of memory."""
    outcomes = problem.evaluate_many(problem.space.encoded)
    heights = knob_heights(problem, problem.space.encoded)
    names = [knob.name for knob in problem.knobs]
    figure = go.Figure(
        [
            _lines(names, heights[rows], label, look)
            for label, rows, look in _classes(outcomes)
            if len(rows)
        ]
    )
    figure.add_trace(
        go.Scatter(
            x=[], y=[], mode="lines+markers", name=PATH, line={"color": "#D55E00", "width": 2},
            marker={"size": 5}, connectgaps=False,
        )
    )  # fmt: skip
    for position, axis in enumerate(problem.instance.encoding.axes):
        for number, word in enumerate(axis.words):
            figure.add_annotation(
                x=position, y=number / (len(axis.words) - 1), text=word, showarrow=False,
                xshift=14, font={"size": 11}, bgcolor="rgba(255,255,255,0.8)",
            )  # fmt: skip
    figure.update_xaxes(tickvals=list(range(len(names))), ticktext=names, title="knob")
    figure.update_yaxes(visible=False, range=[-0.08, 1.08])
    return plain_layout(figure, height=430)


def heat_maps(problem: Problem) -> Any:
    """Throughput or memory of every candidate; a cross is out of memory, blank no candidate."""
    outcomes = problem.evaluate_many(problem.space.encoded)
    columns, rows, x, y = grid(problem)
    shape = (len(rows), len(columns))
    maps = [
        _heat(x, y, shape, columns, rows, values, title)
        for values, title in (
            (outcomes.throughput, "iterations/s"),
            (np.where(outcomes.is_feasible, outcomes.peak_memory_gib, np.nan), "peak memory, GiB"),
        )
    ]
    maps[1].visible = False
    failed = np.flatnonzero(~outcomes.is_feasible)
    out_of_memory = go.Scatter(
        x=[columns[i] for i in x[failed]], y=[rows[i] for i in y[failed]], mode="markers",
        name="out of memory", marker={"symbol": "x-thin", "size": 6, "line": {"width": 1}},
        hovertemplate="%{x}<br>%{y}<br>out of memory<extra></extra>",
    )  # fmt: skip
    best = problem.space.row(problem.optimum.configuration)
    optimum = go.Scatter(
        x=[columns[x[best]]], y=[rows[y[best]]], mode="markers", name="optimum",
        marker={"symbol": "star", "size": 16, "color": "#ffffff", "line": {"width": 1}},
        hovertemplate=f"optimum<br>%{{x}}<br>%{{y}}<br>{problem.optimum.value:.6f} iterations/s",
    )  # fmt: skip
    path = go.Scatter(
        x=[], y=[], mode="lines+markers", name=PATH, text=[],
        line={"color": "#D55E00", "width": 1},
        marker={"size": 7, "color": "#ffffff", "line": {"width": 1, "color": "#000000"}},
        hovertemplate="%{text}<br>%{x}<br>%{y}<extra></extra>",
    )  # fmt: skip
    figure = go.Figure([*maps, out_of_memory, optimum, path])
    choose = [
        {"label": label, "method": "restyle", "args": [{"visible": shown}, [0, 1]]}
        for label, shown in (("throughput", [True, False]), ("memory", [False, True]))
    ]
    figure.update_layout(
        updatemenus=[
            {"type": "buttons", "direction": "right", "x": 0, "y": 1.12, "buttons": choose}
        ]
    )
    figure.update_xaxes(categoryorder="array", categoryarray=columns)
    figure.update_yaxes(categoryorder="array", categoryarray=rows)
    figure.update_xaxes(title=" x ".join(_shared(problem)), tickangle=-60, tickfont={"size": 9})
    figure.update_yaxes(title=", ".join(_others(problem)), tickfont={"size": 9})
    figure = plain_layout(figure, height=200 + 13 * len(rows))
    figure.update_layout(legend={"orientation": "h", "y": 1.1, "x": 0.5})
    return figure


def run_paths(problem: Problem, runs: Sequence[Run]) -> dict[str, Any]:
    """What the page's script needs to draw where each run went.

    Returns:
        Labels of the heat map's `columns` and `rows`; each candidate's place `x`, `y` in them and
        `heights` over its knobs; and per run the candidates `at` which it was, evaluation by
        evaluation, and the observed throughput in iterations/s, None for out of memory.
    """
    columns, rows, x, y = grid(problem)
    heights = knob_heights(problem, problem.space.encoded)
    return {
        "columns": columns,
        "rows": rows,
        "x": x.tolist(),
        "y": y.tolist(),
        "heights": np.round(heights, 4).tolist(),
        "runs": {
            f"{run.key.optimizer}, seed {run.key.seed}": {
                "at": problem.space.rows(run.configurations).tolist(),
                "seen": [_seen(run, t) for t in range(len(run))],
            }
            for run in runs
        },
    }


def grid(problem: Problem) -> tuple[list[str], list[str], IntArray, IntArray]:
    """Labels of the heat map's columns and rows, and each candidate's place (n,) in them."""
    names = [knob.name for knob in problem.knobs]
    shared = [names.index(name) for name in _shared(problem)]
    others = [names.index(name) for name in _others(problem)]
    positions = problem.instance.encoding.positions(problem.space.encoded)
    columns, x = np.unique(positions[:, shared], axis=0, return_inverse=True)
    rows, y = np.unique(positions[:, others], axis=0, return_inverse=True)
    return (
        [_text(problem, shared, places) for places in columns],
        [_text(problem, others, places) for places in rows],
        x.ravel(),
        y.ravel(),
    )


def knob_heights(problem: Problem, encoded: FloatArray) -> FloatArray:
    """Encoded rows (n, d) as heights (n, a) between 0 and 1 over each knob's values."""
    encoding = problem.instance.encoding
    last = np.array([len(axis.values) - 1 for axis in encoding.axes])
    heights: FloatArray = encoding.positions(encoded) / last
    return heights


def _classes(outcomes: Outcomes) -> list[tuple[str, IntArray, dict[str, Any]]]:
    order = np.argsort(-np.nan_to_num(outcomes.throughput, nan=-1.0), kind="stable")
    n_feasible = int(outcomes.is_feasible.sum())
    n_best, n_good = max(1, n_feasible // 100), max(1, n_feasible // 10)
    return [
        ("out of memory", order[n_feasible:], {"color": "#8a8a8a", "dash": "dot", "width": 0.6}),
        ("other feasible", order[n_good:n_feasible], {"color": "#56B4E9", "width": 0.5}),
        ("best 10 %", order[n_best:n_good], {"color": "#0072B2", "width": 1.0}),
        ("best 1 %", order[:n_best], {"color": "#000000", "width": 2.5}),
    ]


def _lines(names: Sequence[str], heights: FloatArray, label: str, look: dict[str, Any]) -> Any:
    """One trace for many lines, parted by gaps."""
    n, d = heights.shape
    x = np.tile(np.append(np.arange(d, dtype=np.float64), np.nan), n)
    y = np.hstack([heights, np.full((n, 1), np.nan)]).ravel()
    return go.Scatter(
        x=x, y=np.round(y, 4), mode="lines", name=f"{label} ({n})", line=look, opacity=0.7,
        text=[*names, ""] * n, hovertemplate="%{text}", connectgaps=False,
    )  # fmt: skip


def _heat(
    x: IntArray,
    y: IntArray,
    shape: tuple[int, int],
    columns: list[str],
    rows: list[str],
    values: FloatArray,
    title: str,
) -> Any:
    z = np.full(shape, np.nan)
    z[y, x] = values
    return go.Heatmap(
        z=z, x=columns, y=rows, name=title, colorscale="Viridis", hoverongaps=False,
        colorbar={"title": {"text": title, "side": "right"}},
        hovertemplate="%{x}<br>%{y}<br>%{z:.4g} " + title + "<extra></extra>",
    )  # fmt: skip


def _seen(run: Run, t: int) -> float | None:
    outcome = run.outcomes[t]
    return round(outcome.throughput, 4) if outcome.is_feasible else None


def _shared(problem: Problem) -> list[str]:
    return [knob.name for knob in problem.knobs if knob.name in _SHARES]


def _others(problem: Problem) -> list[str]:
    return [knob.name for knob in problem.knobs if knob.name not in _SHARES]


def _text(problem: Problem, axes: Sequence[int], positions: IntArray) -> str:
    """The words of some axes' values, such as `dp4 tp2`."""
    chosen = [problem.instance.encoding.axes[i] for i in axes]
    return " ".join(
        axis.knob.text(axis.values[position])
        for axis, position in zip(chosen, positions.tolist(), strict=True)
    )
