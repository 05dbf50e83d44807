"""`parabolt report`: what came out of a study."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from parabolt.cli.output import Json, console, print_json
from parabolt.documents import is_there
from parabolt.errors import ParaboltError
from parabolt.experiments.manifest import load_manifest
from parabolt.experiments.packed import published_files
from parabolt.experiments.results import FailedCount, read_results
from parabolt.journal.file import JOURNAL
from parabolt.problems.registry import load_problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from parabolt.problems.problem import Problem


#: Stands for the runs that this package brings; a directory of that name is `./published`.
_PUBLISHED = "published"


def report(
    folder: Annotated[Path, typer.Argument(help="Directory of the runs.")],
    overlay: Annotated[
        list[str] | None,  # a path would make one of `./published` and `published`
        typer.Option(
            "--with",
            help="A directory, bundle or packed file of runs, or `published`; may be repeated.",
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(help="Compare all others with this optimizer, rather than all pairs."),
    ] = None,
    failed: Annotated[
        FailedCount, typer.Option(help="How failed runs count: as having found nothing, or not.")
    ] = "nothing",
    problem: Annotated[
        list[str] | None,
        typer.Option(help="Own table or problem whose landscape is shown; may be repeated."),
    ] = None,
    formats: Annotated[
        str,
        typer.Option("--format", help="html, md, csv, tex, parquet, png, pdf, svg; with commas."),
    ] = "html",
    out: Annotated[
        Path | None, typer.Option(help="Where to write; by default the directory of the runs.")
    ] = None,
    json: Json = False,
) -> None:
    """Write the report of finished runs: leaderboard, curves, tests and landscape.

    Of a directory of `tune` or `sweep`, write what was found and what it rests on.
    """
    if is_there(folder / JOURNAL):
        _report_on_trials(folder, out or folder, json=json)
        return
    from parabolt.analysis.findings import find  # scipy.stats is slow
    from parabolt.analysis.leaderboard import score_as_json
    from parabolt.analysis.report import write_report

    others = [Path(name) for name in overlay or [] if name != _PUBLISHED]
    is_with_published = len(others) < len(overlay or [])
    findings = find(
        read_results([folder, *others], baselines=published_files() if is_with_published else ()),
        failed=failed,
        against=against,
        problems=[
            *(load_problem(name) for name in problem or []),
            *_problems_at_hand([folder, *others]),
        ],
    )
    wanted = [form.strip() for form in formats.split(",") if form.strip()]
    path = write_report(findings, out or folder, formats=wanted or ["html"])
    if json:
        print_json(
            {
                "report": str(path),
                "leaderboard": [score_as_json(score) for score in findings.scores],
                "comparisons": [asdict(comparison) for comparison in findings.comparisons],
                "notes": [*findings.notes, *(n for b in findings.boards for n in b.notes)],
            }
        )
    else:
        console().print(f"report: {path}", soft_wrap=True)


def _problems_at_hand(folders: list[Path]) -> Iterator[Problem]:
    """Problems of studies that are files here or simulated machines; nothing is fetched."""
    for folder in folders:
        manifest = None if folder.is_file() else load_manifest(folder)
        for address in manifest.study.problems if manifest else ():
            if Path(address).is_file() or address.startswith("simulated:"):
                with suppress(ParaboltError):  # one that has changed is no longer the one that ran
                    yield load_problem(address)


def _report_on_trials(folder: Path, out: Path, *, json: bool) -> None:
    from parabolt.analysis.trial_report import write_trial_report

    path = write_trial_report(folder, out)
    if json:
        print_json({"report": str(path)})
    else:
        console().print(f"report: {path}", soft_wrap=True)
