"""The report of a set of runs: one HTML page that opens offline, and its parts as files."""

from __future__ import annotations

import base64
import html
import json
import math
from dataclasses import asdict
from string import Template
from typing import TYPE_CHECKING

from parabolt.analysis.figures import regret_curves
from parabolt.analysis.statistics import leaderboard
from parabolt.errors import MissingDependencyError, OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from parabolt.analysis.metrics import Score
    from parabolt.experiments.run import Run

#: Heading and explanation of the leaderboard's columns.
COLUMNS: dict[str, str] = {
    "optimizer": "name of the optimizer",
    "found": "runs that evaluated the optimum",
    "evaluations to it": "median over runs, the design included; > budget unless half found it",
    "final regret, %": "mean simple regret at the end, in percent of the optimum, 95 % interval",
    "OOM, %": "share of out-of-memory evaluations after the initial design",
    "s/step": "mean time that the optimizer took per evaluation, in seconds",
}

_PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>parabolt report</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color: #1a1a1a; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .3rem .9rem; text-align: right; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; }
tbody tr:first-child { font-weight: 600; }
img { max-width: 100%; }
.note { color: #555; font-size: .9rem; }
</style></head><body>
<h1>Optimizers compared</h1>
$tables
$figure
<h2>How to read this</h2>
<dl class="note">$legend</dl>
<p class="note">$provenance</p>
</body></html>
""")


def write_report(runs: Sequence[Run], folder: Path) -> Path:
    """Writes `report.html`, `leaderboard.json` and, where matplotlib is there, `regret.png`.

    Args:
        runs: Finished runs, at least one.
        folder: Where to write.

    Returns:
        The path of the page.

    Raises:
        OptionError: If the directory can't be written.
    """
    scores = leaderboard(runs)
    page, figure = folder / "report.html", folder / "regret.png"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "leaderboard.json").write_text(
            json.dumps([score_as_json(score) for score in scores], indent=2) + "\n",
            encoding="utf-8",
        )
        try:
            regret_curves(runs, figure)
            encoded = base64.b64encode(figure.read_bytes()).decode()
            picture = f'<img alt="Regret and success curves" src="data:image/png;base64,{encoded}">'
        except MissingDependencyError as error:
            picture = f'<p class="note">No curves: {html.escape(str(error))}</p>'
        page.write_text(_page(runs, scores, picture), encoding="utf-8")
    except OSError as error:
        raise OptionError(f"cannot write the report to {folder}: {error}") from error
    return page


def score_as_json(score: Score) -> dict[str, object]:
    """A score with null for what JSON has no number for."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in asdict(score).items()
    }


def score_cells(score: Score) -> list[str]:
    """The texts of one line of the leaderboard, in the order of `COLUMNS`."""
    to_optimum = score.median_evaluations_to_optimum
    return [
        score.optimizer,
        f"{score.n_found}/{score.n_runs}",
        f"> {score.n_evaluations}" if math.isinf(to_optimum) else f"{to_optimum:g}",
        f"{score.final_regret_percent:.2f} "
        f"[{score.final_regret_low_percent:.2f}, {score.final_regret_high_percent:.2f}]",
        f"{100.0 * score.oom_share:.1f}",
        f"{score.step_time_s:.2g}",
    ]


def _page(runs: Sequence[Run], scores: Sequence[Score], picture: str) -> str:
    problems = list(dict.fromkeys(score.problem for score in scores))
    legend = "".join(f"<dt><b>{name}</b></dt><dd>{text}</dd>" for name, text in COLUMNS.items())
    return _PAGE.substitute(
        tables="".join(_table(p, [s for s in scores if s.problem == p]) for p in problems),
        figure=picture,
        legend=legend,
        provenance="<br>".join(html.escape(line) for line in provenance(runs)),
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


def _table(problem: str, scores: Sequence[Score]) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in COLUMNS)
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in score_cells(score)) + "</tr>"
        for score in scores
    )
    heading = f"<h2>{html.escape(problem)}</h2>"
    return f"{heading}<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
