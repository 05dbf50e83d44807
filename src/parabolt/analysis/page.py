"""The page of findings: one HTML file that opens offline."""

from __future__ import annotations

import html
import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from parabolt.analysis.curves import AXES
from parabolt.analysis.headline import headline, leaders
from parabolt.analysis.landscape import (
    OUT_OF_MEMORY,
    UNKNOWN_FAILURE,
    grid,
    heights,
    improvements,
)
from parabolt.analysis.leaderboard import COLUMNS, score_cells
from parabolt.analysis.method_style import method_style
from parabolt.analysis.sheets import comparison_sheet
from parabolt.analysis.words import count
from parabolt.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from parabolt.analysis.findings import BoardFindings, Findings
    from parabolt.analysis.landscape import Landscape
    from parabolt.experiments.run import Run

#: With more runs than this on a problem, the page draws the search of one run per optimizer.
MAX_SEARCHES = 200

#: Least width of a cell of the heat map, in pixels; a narrow page scrolls it.
_CELL_PX = 15

_INKS = {
    "light": {"ink": "#1a1a1a", "grid": "#e3e3e3", "paper": "rgba(255,255,255,0.75)"},
    "dark": {"ink": "#e8e8e8", "grid": "#30363d", "paper": "rgba(21,24,28,0.75)"},
}


def write_page(findings: Findings) -> str:
    """The page as text.

    Raises:
        MissingDependencyError: If plotly is not installed.
    """
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise MissingDependencyError.of("plotly", "report") from error
    body = "".join(_body(findings))
    data = {
        "figures": _figures(findings),
        "landscapes": {
            str(number): _searches(found.landscape, found)
            for number, found in enumerate(findings.boards)
            if _is_drawn(found.landscape)
        },
        "themes": {name: _theme(**inks) for name, inks in _INKS.items()},
    }
    script = files("parabolt.analysis").joinpath("page.js").read_text(encoding="utf-8")
    return whole_page(
        "Optimizers compared",
        f'{body}<script type="application/json" id="findings">{script_json(data)}</script>'
        f"<script>{script}</script>",
        head=f"<script>{get_plotlyjs()}</script>",
    )


def whole_page(title: str, body: str, *, head: str = "") -> str:
    """An HTML page in the house's style; `title` is text, `body` and `head` are HTML."""
    style = files("parabolt.analysis").joinpath("page.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>parabolt: {html.escape(title)}</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><style>{style}</style>{head}</head>'
        f"<body><h1>{html.escape(title)}</h1>\n{body}</body></html>\n"
    )


def script_json(value: Any) -> str:
    """JSON that can stand inside a script element, whatever the texts in it say."""
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c")


def html_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], kind: str, *, n_best: int = 0
) -> str:
    """A table of texts, its first `n_best` lines marked; it scrolls where it is too wide."""
    top = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in head)
    body = "".join(
        f"<tr{' class=best' if number < n_best else ''}>"
        + "".join(f"<td>{_cell(cell)}</td>" for cell in row)
        + "</tr>"
        for number, row in enumerate(rows)
    )
    return (
        f'<div class="wide"><table class="{kind}"><thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _cell(text: str) -> str:
    """A figure and its interval in brackets, which a narrow page puts below it."""
    figure, bracket, interval = text.partition(" [")
    if not (bracket and figure[:1].isdigit()):
        return html.escape(text)
    return f'{html.escape(figure)} <span class="interval">[{html.escape(interval)}</span>'


def _body(findings: Findings) -> Iterator[str]:
    yield from (_warning(note) for note in findings.notes)
    yield f"<p>{' '.join(headline(findings))}</p>"
    yield _legend(findings)
    for found in findings.boards:
        yield f"<h2>{html.escape(found.board.label)}</h2>"
        yield from (_warning(note) for note in found.notes)
        rows = [score_cells(score) for score in found.scores]
        yield html_table(list(COLUMNS), rows, "leaderboard", n_best=len(leaders(found.scores)))
    yield _curves_part(findings)
    yield from _tests_part(findings)
    yield from _tradeoff_part(findings)
    for number, found in enumerate(findings.boards):
        yield _landscape_part(number, found)
    legend = "".join(f"<dt><b>{name}</b></dt><dd>{text}</dd>" for name, text in COLUMNS.items())
    yield f'<h2>How to read this</h2><dl class="note">{legend}</dl>'
    lines = "<br>".join(html.escape(line) for line in provenance(findings))
    yield f'<p class="note">{lines}</p>'


def provenance(findings: Findings) -> list[str]:
    """What was run on which data under which protocol, a line per board."""
    return [
        f"{found.board.label}: data {found.board.data_version}, SHA-256 "
        f"{found.board.content_hash[:12]}; optimum {found.board.optimum:.6f} iterations/s; "
        f"{found.board.protocol}; {count(len(found.seeds), 'seed')}."
        for found in findings.boards
    ]


def _legend(findings: Findings) -> str:
    buttons = []
    for name in findings.optimizers:
        style = method_style(name)
        dashes = " ".join(f"{2 * length:g}" for length in style.pattern)
        buttons.append(
            f'<button type="button" data-method="{html.escape(name)}" aria-pressed="true">'
            f'<svg width="28" height="8"><line x1="0" y1="4" x2="28" y2="4" stroke="{style.color}" '
            f'stroke-width="2.5" stroke-dasharray="{dashes}"/></svg>{html.escape(name)}</button>'
        )
    return (
        f'<div class="legend" title="Click hides, double-click isolates">{"".join(buttons)}</div>'
    )


def _curves_part(findings: Findings) -> str:
    from parabolt.analysis.charts import AXIS_TITLES

    there = [axis for axis in AXES if all(axis in found.curves for found in findings.boards)]
    options = "".join(f'<option data-title="{AXIS_TITLES[axis]}">{axis}</option>' for axis in there)
    control = f'<p class="controls"><label>over <select class="axis">{options}</select></label></p>'
    charts = [
        f"<div><h3>{html.escape(_runs_title(found))}</h3>{_chart(f'curves-{number}')}</div>"
        for number, found in enumerate(findings.boards)
    ]
    return (
        "<h2>Regret and success</h2>"
        '<p class="note">Above, the median simple regret of the runs, the band from quartile to '
        "quartile; below, the share of runs that have evaluated the optimum. Click a name in the "
        "legend to hide it, double-click to see it alone.</p>"
        f"{control if len(there) > 1 else ''}<div class=boards>{''.join(charts)}</div>"
    )


def _tests_part(findings: Findings) -> Iterator[str]:
    yield "<h2>Ranks, tests and outcomes</h2>"
    if findings.ranking:
        yield f"<h3>Mean ranks over {html.escape(', '.join(findings.ranking.problems))}</h3>"
        yield '<p class="note">Grey: the critical difference from the best.</p>'
        yield _chart("ranks")
    sheet = comparison_sheet(findings)
    tables = "".join(
        f"<h4>{html.escape(part)}</h4>{html_table(sheet.headings, rows, 'comparisons')}"
        for part, rows in sheet.shown.items()
    )
    hint = "".join(f'<p class="note">{html.escape(text)}</p>' for text in _power_notes(findings))
    if findings.reference:
        yield f"<h3>{html.escape(sheet.title)}</h3>{hint}{tables}"
    elif tables:
        yield (
            "<details><summary>Every pair, by final regret: tests and effect sizes</summary>"
            f"{hint}{tables}</details>"
        )
    yield "<h3>Evaluations that did not run</h3>"
    if any(score.failed_share > 0.0 for score in findings.scores):
        yield (
            '<p class="note">Plain: out of memory. Hatched: failed, for memory or a crash; the '
            "data don't say for which.</p>"
        )
    yield '<div class="boards">'
    for number, found in enumerate(findings.boards):
        yield f"<div><h3>{html.escape(found.board.label)}</h3>{_chart(f'outcomes-{number}')}</div>"
    within = 100.0 * findings.profile.within
    yield (
        '</div><h3>Performance profile</h3><p class="note">Share of runs that came within '
        f"{within:g} % of the optimum, against the evaluations that it took them as a factor of "
        f"the fewest of any optimizer on that problem and seed.</p>{_chart('profile')}"
    )


def _power_notes(findings: Findings) -> Iterator[str]:
    """Says where so few seeds cannot show a difference, whatever the runs."""
    hopeless = [c for c in findings.comparisons if c.smallest_holm_p > 0.05]
    if hopeless:
        worst = max(hopeless, key=lambda c: c.smallest_holm_p)
        yield (
            f"With {count(worst.n_seeds, 'seed')} and so many comparisons no p-value after Holm's "
            f"correction can be below {worst.smallest_holm_p:.3g}, whatever the runs: compare with "
            "one optimizer (parabolt report --against NAME), or run more seeds (parabolt study "
            "power says how many)."
        )


def _tradeoff_part(findings: Findings) -> Iterator[str]:
    numbers = [number for number, found in enumerate(findings.boards) if found.tradeoff]
    if not numbers:
        return
    yield (
        "<h2>Throughput against memory</h2>"
        '<p class="note">Two objectives: most throughput and least peak memory. The hypervolume is '
        "the area between the Pareto front and the reference point, 0 iterations/s at the memory "
        "of a GPU; beside it, what of it the runs have found: median and quartiles.</p>"
    )
    for number in numbers:
        found = findings.boards[number]
        tradeoff = found.tradeoff
        if tradeoff is None:
            continue
        yield (
            f"<h3>{html.escape(found.board.label)}</h3>"
            f'<p class="note">{count(len(tradeoff.front), "candidate")} on the front; its '
            f"hypervolume is {tradeoff.hypervolume:.5g} iterations/s x GiB with the reference "
            f"point (0 iterations/s, {tradeoff.capacity_gib:.5g} GiB).</p>"
            f'<div class="boards">{_chart(f"tradeoff-{number}")}{_chart(f"volume-{number}")}</div>'
        )


def _landscape_part(number: int, found: BoardFindings) -> str:
    name, land = html.escape(found.board.label), found.landscape
    if land is None:
        return (
            f'<p class="note">No landscape of {name}: its data are not at hand; try --problem PATH '
            "with its table.</p>"
        )
    if not _is_drawn(land):
        return f'<p class="note">No landscape of {name}: all its knobs have one size.</p>'
    options = "".join(
        f"<option{' selected' if place == 0 else ''}>{html.escape(_search_name(run))}</option>"
        for place, run in enumerate(_shown_runs(found))
    )
    width = 90 + _CELL_PX * len(grid(land).columns)
    return (
        f"<h2>The landscape of {name}</h2>"
        f'<p class="note">Every candidate. {_endings_note(land)}Blank is no candidate, the star is '
        "the optimum. Numbers are the evaluations of a search in their order, each where it came "
        "first; below, its improvements among all candidates, and the whole search."
        '</p><p class="controls"><label>search <select class="path" '
        f'data-board="{number}">{options}<option>none</option></select></label>'
        f'<label>colour <select class="kind" data-board="{number}"><option>throughput</option>'
        "<option>memory</option></select></label></p>"
        f'<div class="wide"><div class="chart" id="heat-{number}" style="min-width: {width}px">'
        f"</div></div>{_chart(f'knobs-{number}')}"
        f'<div class="path-list" id="path-{number}" hidden><table class="path-list"><thead><tr>'
        "<th>evaluation</th><th>configuration</th><th>iterations/s</th></tr></thead>"
        "<tbody></tbody></table></div>"
    )


def _endings_note(land: Landscape) -> str:
    """What stands for candidates that don't run, in words."""
    marks = {OUT_OF_MEMORY: "A cross ran out of memory. ",
             UNKNOWN_FAILURE: "A ring failed, for memory or a crash. "}  # fmt: skip
    return "".join(marks.get(ending, f"A square {ending}. ") for ending in land.endings())


def _figures(findings: Findings) -> dict[str, Any]:
    from parabolt.analysis import charts  # plotly is needed by the page only

    made: dict[str, Any] = {"profile": charts.profile_chart(findings.profile)}
    if findings.ranking:
        made["ranks"] = charts.rank_chart(findings.ranking)
    for number, found in enumerate(findings.boards):
        made[f"curves-{number}"] = charts.curve_chart(found)
        made[f"outcomes-{number}"] = charts.outcome_chart(found.scores)
        if found.landscape and found.tradeoff:
            made[f"tradeoff-{number}"] = charts.tradeoff_chart(found.landscape, found.tradeoff)
            made[f"volume-{number}"] = charts.volume_chart(found.tradeoff)
        if found.landscape and _is_drawn(found.landscape):
            made[f"heat-{number}"] = charts.heat_map(found.landscape)
            made[f"knobs-{number}"] = charts.parallel_coordinates(found.landscape)
    plain = {name: json.loads(figure.to_json()) for name, figure in made.items()}
    for figure in plain.values():
        del figure["layout"]["template"]  # the script puts in the theme's
    return plain


def _searches(land: Landscape | None, found: BoardFindings) -> dict[str, Any]:
    """What the page's script needs to draw and list searches."""
    if land is None:
        return {}
    places = grid(land)
    return {
        "x": places.x.tolist(),
        "y": places.y.tolist(),
        "texts": [land.text(row) for row in range(len(land))],
        "heights": heights(land).round(4).tolist(),
        "runs": {
            _search_name(run): {
                "at": land.space.rows(run.configurations).tolist(),
                "seen": [_seen(run, t) for t in range(len(run))],
                "better": improvements(run),
            }
            for run in _shown_runs(found)
        },
    }


def _is_drawn(land: Landscape | None) -> bool:
    return land is not None and len(land.axes) > 0


def _shown_runs(found: BoardFindings) -> list[Run]:
    groups = [[run for run in group if not run.is_stand_in] for group in found.runs.values()]
    if sum(map(len, groups)) <= MAX_SEARCHES:
        return [run for group in groups for run in group]
    return [group[0] for group in groups if group]


def _search_name(run: Run) -> str:
    return f"{run.key.optimizer}, seed {run.key.seed}"


def _seen(run: Run, t: int) -> str:
    outcome = run.outcomes[t]
    return f"{outcome.throughput:.4f}" if outcome.is_feasible else str(outcome.status)


def _runs_title(found: BoardFindings) -> str:
    failed = sum(score.n_failed for score in found.scores)
    more = f", {failed} of them failed" if failed else ""
    n = sum(score.n_runs for score in found.scores)
    seeds = f"{found.board.label}: {count(len(found.seeds), 'seed')}"
    return f"{seeds}, {n} runs{more}" if more else seeds


def _theme(ink: str, grid: str, paper: str) -> dict[str, Any]:
    axis = {
        "gridcolor": grid, "linecolor": ink, "zerolinecolor": grid, "tickcolor": ink,
        "showline": True, "ticks": "outside", "automargin": True, "zeroline": False,
        "title": {"standoff": 8},
    }  # fmt: skip
    return {
        "layout": {
            "font": {"color": ink, "family": "system-ui, sans-serif", "size": 12},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "xaxis": axis,
            "yaxis": axis,
            "annotationdefaults": {"bgcolor": paper},
            "hoverlabel": {"font": {"size": 12}},
        }
    }


def _chart(name: str) -> str:
    return f'<div class="chart" id="{name}"></div>'


def _warning(text: str) -> str:
    return f'<p class="warning">{html.escape(text)}</p>'
