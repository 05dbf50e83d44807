"""`parabolt report`: what came out of a study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from parabolt.cli.output import Json, console, print_json
from parabolt.experiments.results import read_results
from parabolt.journal.file import JOURNAL


def report(
    folder: Annotated[Path, typer.Argument(help="Directory of the runs.")],
    overlay: Annotated[
        list[Path] | None,
        typer.Option("--with", help="Another directory of runs to compare with; may be repeated."),
    ] = None,
    formats: Annotated[
        str, typer.Option("--format", help="html, md, csv, tex, png, pdf; comma-separated.")
    ] = "html",
    out: Annotated[
        Path | None, typer.Option(help="Where to write; by default the directory of the runs.")
    ] = None,
    json: Json = False,
) -> None:
    """Write the report of finished runs: leaderboard, curves, tests and landscape.

    Of a directory of `tune` or `sweep`, write what was found and what it rests on.
    """
    if (folder / JOURNAL).exists():
        _report_on_trials(folder, out or folder, json=json)
        return
    from parabolt.analysis.leaderboard import leaderboard, score_as_json  # scipy.stats is slow
    from parabolt.analysis.report import write_report

    results = read_results([folder, *(overlay or [])])
    runs = results.counted()
    wanted = [form.strip() for form in formats.split(",") if form.strip()]
    path = write_report(runs, out or folder, formats=wanted or ["html"])
    if json:
        scores = [score_as_json(score) for score in leaderboard(runs)]
        print_json({"report": str(path), "leaderboard": scores})
    else:
        console().print(f"report: {path}", soft_wrap=True)


def _report_on_trials(folder: Path, out: Path, *, json: bool) -> None:
    from parabolt.analysis.trial_report import write_trial_report

    path = write_trial_report(folder, out)
    if json:
        print_json({"report": str(path)})
    else:
        console().print(f"report: {path}", soft_wrap=True)
