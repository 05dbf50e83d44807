"""Puts a finished grid into the documentation: `python scripts/docs_grid.py STORE`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from parabolt.analysis.report import write_report
from parabolt.experiments.store import RunStore

DOCS = Path(__file__).parents[1] / "docs"


def main() -> None:
    """Writes the report, its picture and its leaderboard."""
    runs = RunStore(Path(sys.argv[1])).load_all()
    folder = DOCS / "reports"
    write_report(runs, folder, formats=("html", "png", "md"))
    (folder / "report.html").replace(folder / "grid.html")
    (folder / "report.png").replace(DOCS / "figures" / "grid.png")
    table = (folder / "report.md").read_text(encoding="utf-8")
    (folder / "report.md").unlink()
    page = DOCS / "grid.md"
    text = page.read_text(encoding="utf-8")
    between = f"<!-- leaderboard -->\n\n{table.strip()}\n\n<!-- /leaderboard -->"
    marked = r"<!-- leaderboard -->.*<!-- /leaderboard -->"
    page.write_text(re.sub(marked, lambda _: between, text, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()
