"""Takes the README's picture: the report of a bench, drawn by headless Chromium.

Usage: python scripts/readme_picture.py RUNS_DIR
"""

import subprocess
import sys
import tempfile
from pathlib import Path

TARGET = Path(__file__).parents[1] / "docs" / "figures" / "report.png"


def main(runs: Path) -> None:
    """Draws RUNS_DIR/report.html into docs/figures/report.png."""
    page = (runs / "report.html").resolve()
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                "--disable-background-networking", "--disable-component-update", "--disable-sync",
                "--hide-scrollbars", f"--user-data-dir={profile}", "--window-size=1000,1150",
                f"--screenshot={TARGET}", page.as_uri(),
            ],
            check=True,
        )  # fmt: skip
    print(TARGET)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
