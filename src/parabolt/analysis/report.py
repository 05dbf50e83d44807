"""The report of runs: one HTML page that opens offline, and the same facts in other formats."""

from __future__ import annotations

import html
import json
from string import Template
from typing import TYPE_CHECKING, Any

from parabolt.analysis.exports import as_csv, as_latex, as_markdown
from parabolt.analysis.figures import draw_curves
from parabolt.analysis.leaderboard import COLUMNS, leaderboard, score_cells
from parabolt.analysis.metrics import group_runs
from parabolt.analysis.statistics import compare_pairs, rank_optimizers
from parabolt.errors import MissingDependencyError, OptionError
from parabolt.files import write_whole
from parabolt.problems.registry import load_problem, problem_names

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from parabolt.analysis.leaderboard import Score
    from parabolt.analysis.statistics import Ranking
    from parabolt.experiments.run import Run
    from parabolt.problems.problem import Problem

FORMATS = ("html", "md", "csv", "tex", "png", "pdf")
_DRAWN = {"html", "png", "pdf"}

#: With more runs than this on a problem, the page draws the path of one run per optimizer.
MAX_PATHS = 200

#: Mean regrets closer than this, in percent of the optimum, are called equal.
_SAME_PERCENT = 1e-6

_TEXTS = {"md": as_markdown, "csv": as_csv, "tex": as_latex}

_PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>parabolt report</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem;
       color: #1a1a1a; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .25rem .9rem; text-align: right; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; }
.leaderboard tbody tr:first-child { font-weight: 600; }
.note { color: #555; font-size: .9rem; max-width: 52rem; }
</style><script>$plotly</script></head><body>
<h1>Optimizers compared</h1>
$summary
$boards
<h2>Regret and success</h2>
<p class="note">Above, the median simple regret of the runs, the band from quartile to quartile;
below, the share of runs that have evaluated the optimum. Click a name to hide it, double-click to
see it alone.</p>
$curves
<h2>Ranks and outcomes</h2>
$ranks
$outcomes
$profile
$pairs
$landscapes
<h2>How to read this</h2>
<dl class="note">$legend</dl>
<p class="note">$provenance</p>
<script>
const landscapes = $paths;
for (const choice of document.querySelectorAll("select.path")) {
  choice.addEventListener("change", () => {
    const land = landscapes[choice.dataset.problem];
    const {at, seen} = land.runs[choice.value] || {at: [], seen: []};
    const told = seen.map((value, i) => `evaluation $${i + 1}: ` +
      (value === null ? "out of memory" : `$${value.toFixed(4)} iterations/s`));
    const lines = at.flatMap(row => [...land.heights[row], null]);
    const knobs = at.flatMap(row => [...land.heights[row].keys(), null]);
    const drawn = {
      heat: {x: [at.map(row => land.columns[land.x[row]])],
             y: [at.map(row => land.rows[land.y[row]])], text: [told]},
      knobs: {x: [knobs], y: [lines]},
    };
    for (const kind of ["heat", "knobs"]) {
      const plot = document.getElementById(kind + "-" + choice.dataset.problem);
      const trace = plot.data.findIndex(t => t.name === "$path");
      Plotly.restyle(plot, drawn[kind], [trace]);
    }
  });
}
</script>
</body></html>
""")


def write_report(runs: Sequence[Run], folder: Path, *, formats: Sequence[str] = ("html",)) -> Path:
    """Writes the report in one or more formats.

    Args:
        runs: Finished runs, at least one.
        folder: Where to write `report.FORMAT`.
        formats: Among `FORMATS`. HTML needs the extra `report`; PNG and PDF need `plot`.

    Returns:
        The path of the first format's file.

    Raises:
        OptionError: For an unknown format.
        MissingDependencyError: If a library that a format needs is not installed.
        StoreError: If the directory can't be written.
    """
    if unknown := sorted(set(formats) - set(FORMATS)):
        raise OptionError(f"format: expected one of {', '.join(FORMATS)}, got {unknown[0]}")
    scores = leaderboard(runs)
    ranking = rank_optimizers(runs) if _DRAWN & set(formats) else None
    if ranking:  # charts and their legends list the best first
        places = list(ranking.mean_ranks)
        runs = sorted(runs, key=lambda run: places.index(run.key.optimizer))
    for form in formats:
        if form in ("png", "pdf"):
            content = draw_curves(runs, form)
        else:
            text = _page(runs, scores, ranking) if form == "html" else _TEXTS[form](scores)
            content = text.encode()
        write_whole(folder / f"report.{form}", content)
    return folder / f"report.{formats[0]}"


def _page(runs: Sequence[Run], scores: Sequence[Score], ranking: Ranking | None) -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise MissingDependencyError.of("plotly", "report") from error

    from parabolt.analysis import charts  # plotly is needed by the page only

    problems = list(group_runs(runs))
    landscapes, paths = _landscapes(runs)
    legend = "".join(f"<dt><b>{name}</b></dt><dd>{text}</dd>" for name, text in COLUMNS.items())
    return _PAGE.substitute(
        plotly=get_plotlyjs(),
        summary=_summary(scores, ranking),
        boards="".join(_board(p, [s for s in scores if s.problem == p]) for p in problems),
        curves=_div(charts.curve_chart(runs), "curves"),
        ranks=_div(charts.rank_chart(ranking), "ranks") if ranking else "",
        outcomes=_div(charts.outcome_chart(runs), "outcomes"),
        profile=_div(charts.profile_chart(runs), "profile"),
        pairs=_pairs(runs),
        landscapes=landscapes,
        legend=legend,
        provenance="<br>".join(html.escape(line) for line in provenance(runs)),
        paths=json.dumps(paths).replace("</", "<\\/"),
        path="path of the run",
    )


def provenance(runs: Sequence[Run]) -> list[str]:
    """What was run on which data, a line per problem."""
    lines = {}
    for run in runs:
        protocol = run.key.protocol
        lines[run.key.problem] = (
            f"{run.key.problem}: data {run.key.data_version}, SHA-256 {run.key.content_hash[:12]}; "
            f"optimum {run.optimum:.6f} iterations/s; {protocol.n_initial} initial rows, then "
            f"{protocol.n_evaluations} evaluations, noise {protocol.noise_std:g} iterations/s, "
            f"repeats: {protocol.repeats}."
        )
    return list(lines.values())


def _summary(scores: Sequence[Score], ranking: Ranking | None) -> str:
    lines = []
    for problem in dict.fromkeys(score.problem for score in scores):
        board = [score for score in scores if score.problem == problem]
        least = board[0].final_regret_percent
        best = [s for s in board if s.final_regret_percent <= least + _SAME_PERCENT]
        who = ", ".join(
            f"<b>{html.escape(s.optimizer)}</b> (found in {s.n_found} of {s.n_runs} runs)"
            for s in best
        )
        lines.append(
            f"On <b>{html.escape(problem)}</b>, closest to the optimum on average, {least:.2f} % "
            f"below it at the end: {who}."
        )
    if ranking:
        first, *rest = ranking.mean_ranks.items()
        tied = [n for n, rank in rest if rank - first[1] < ranking.critical_difference]
        lines.append(
            f"Over all problems and seeds <b>{html.escape(first[0])}</b> has the best mean rank"
            + (f"; {html.escape(', '.join(tied))} can't be told from it." if tied else ".")
        )
    return f"<p>{' '.join(lines)}</p>"


def _board(problem: str, scores: Sequence[Score]) -> str:
    rows = [score_cells(score) for score in scores]
    return f"<h2>{html.escape(problem)}</h2>" + _html_table(list(COLUMNS), rows, "leaderboard")


def _pairs(runs: Sequence[Run]) -> str:
    comparisons = compare_pairs(runs)
    if not comparisons:
        return ""
    head = ["pair", "Wilcoxon p", "after Holm", "Mann-Whitney p", "P(first is better)"]
    rows = [
        [
            f"{c.problem}: {c.first} / {c.second}",
            f"{c.wilcoxon_p:.3g}",
            f"{c.holm_p:.3g}",
            f"{c.mann_whitney_p:.3g}",
            f"{c.superiority:.2f}",
        ]
        for c in comparisons
    ]
    title = "<summary>Every pair, by final regret: tests and effect sizes</summary>"
    return f"<details>{title}{_html_table(head, rows, 'pairs')}</details>"


def _html_table(head: Sequence[str], rows: Sequence[Sequence[str]], kind: str) -> str:
    top = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f'<table class="{kind}"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'


def _landscapes(runs: Sequence[Run]) -> tuple[str, dict[str, Any]]:
    from parabolt.analysis.landscape import heat_maps, parallel_coordinates, run_paths

    parts, paths = [], {}
    for name, groups in group_runs([run for run in runs if not run.is_stand_in]).items():
        problem = _problem_of(next(iter(groups.values()))[0])
        if problem is None:
            parts.append(
                f'<p class="note">No landscape of {html.escape(name)}: its table is not here.</p>'
            )
            continue
        shown = _shown_runs(groups)
        paths[name] = run_paths(problem, shown)
        choices = "".join(f"<option>{html.escape(label)}</option>" for label in paths[name]["runs"])
        parts.append(
            f"<h2>The landscape of {html.escape(name)}</h2>"
            '<p class="note">Every candidate of the table. A cross is out of memory, blank is '
            "no candidate, the star is the optimum. Choose a run to see where it went: "
            f'<select class="path" data-problem="{html.escape(name)}">'
            f"<option>no run</option>{choices}</select></p>"
            + _div(heat_maps(problem), f"heat-{name}")
            + _div(parallel_coordinates(problem), f"knobs-{name}")
        )
    return "".join(parts), paths


def _shown_runs(groups: dict[str, list[Run]]) -> list[Run]:
    if sum(map(len, groups.values())) <= MAX_PATHS:
        return [run for group in groups.values() for run in group]
    return [min(group, key=lambda run: run.key.seed) for group in groups.values()]


def _problem_of(run: Run) -> Problem | None:
    """The embedded problem of a run's data; what a run's file names is never opened or fetched."""
    for name in problem_names():
        problem = load_problem(name)
        if problem.content_hash == run.key.content_hash:
            return problem
    return None


def _div(figure: Any, name: str) -> str:
    text: str = figure.to_html(
        full_html=False, include_plotlyjs=False, div_id=name, config={"displaylogo": False}
    )
    return text
