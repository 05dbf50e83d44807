"""Puts the published grid into the documentation: `python scripts/docs_grid.py`.

`scripts/publish_runs.py` publishes a grid; its interactive report is made when the site is built.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from parabolt.analysis.exports import as_markdown
from parabolt.analysis.findings import find
from parabolt.analysis.report import write_report
from parabolt.analysis.sheets import leaderboard_sheet
from parabolt.experiments.packed import published_files
from parabolt.experiments.results import read_results

DOCS = Path(__file__).parents[1] / "docs"


def main() -> None:
    """Writes the picture of the grid and its leaderboard."""
    (store,) = (path for path in published_files() if path.stem == "grid")
    findings = find(read_results([store]), against="parabolt")
    with tempfile.TemporaryDirectory() as made:
        write_report(findings, Path(made), formats=("png",))
        shutil.copy(Path(made) / "report.png", DOCS / "figures" / "grid.png")
    table = as_markdown([leaderboard_sheet(findings)])
    page = DOCS / "grid.md"
    text = page.read_text(encoding="utf-8")
    between = f"<!-- leaderboard -->\n\n{table.strip()}\n\n<!-- /leaderboard -->"
    marked = r"<!-- leaderboard -->.*<!-- /leaderboard -->"
    page.write_text(re.sub(marked, lambda _: between, text, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()
