"""The report of results: a page, and the same figures and tables as files for a paper."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from parabolt.analysis.exports import as_csv, as_latex, as_markdown, as_parquet
from parabolt.analysis.figures import draw_figures
from parabolt.analysis.page import write_page
from parabolt.analysis.sheets import make_sheets
from parabolt.errors import OptionError
from parabolt.experiments.manifest import FILE_NAME
from parabolt.experiments.runner import lock_store
from parabolt.files import write_all_whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from parabolt.analysis.findings import Findings

FORMATS = ("html", "md", "csv", "tex", "parquet", "png", "pdf", "svg")
_FIGURES = ("png", "pdf", "svg")

#: Tables short enough for one document of all.
_SHORT = ("leaderboard", "comparisons", "ranks", "runs")


def write_report(findings: Findings, folder: Path, *, formats: Sequence[str] = ("html",)) -> Path:
    """Writes the report in one or more formats.

    `report.FORMAT` is the page, the short tables, the leaderboard or the curves; further tables
    and figures are `report-NAME.FORMAT`. What stood there before stays until all is on the disk.

    Args:
        findings: What there is to say of results, see `find`.
        folder: Where to write.
        formats: Among `FORMATS`. HTML needs the extra `report`; PNG, PDF and SVG need `plot`.

    Returns:
        The path of the first format's file.

    Raises:
        OptionError: For an unknown format.
        MissingDependencyError: If a library that a format needs is not installed.
        LockedError: If a study, or another report, is writing there.
        StoreError: If the directory can't be written.
    """
    if unknown := sorted(set(formats) - set(FORMATS)):
        raise OptionError(f"format: expected one of {', '.join(FORMATS)}, got {unknown[0]}")
    contents = {
        folder / f"{name}.{form}": content
        for form in formats
        for name, content in _files(findings, form)
    }
    with lock_store(folder, is_lasting=(folder / FILE_NAME).exists()):
        write_all_whole(contents)
    return folder / f"report.{formats[0]}"


def _files(findings: Findings, form: str) -> Iterator[tuple[str, bytes]]:
    """Names without ending and contents of the files of a format."""
    if form == "html":
        yield "report", write_page(findings).encode()
        return
    if form in _FIGURES:
        for name, content in draw_figures(findings, form):
            yield "report" if name == "curves" else f"report-{file_part(name)}", content
        return
    sheets = make_sheets(findings)
    short = [sheet for sheet in sheets if sheet.name in _SHORT]
    if form == "md":
        yield "report", as_markdown(short).encode()
    elif form == "tex":
        yield "report", as_latex(short).encode()
    for sheet in sheets:
        name = "report" if sheet.name == "leaderboard" else f"report-{sheet.name}"
        if form == "csv":
            yield name, as_csv(sheet).encode()
        elif form == "parquet":
            yield name, as_parquet(sheet)
        elif form == "tex" and sheet not in short:
            yield name, as_latex([sheet]).encode()


def file_part(text: str) -> str:
    """Text as part of a file's name."""
    return re.sub(r"[^\w.+-]+", "-", text).strip("-") or "unnamed"
