"""Follows each library's page word by word from an empty environment, and times it.

    python scripts/check_pages.py WHEEL [PAGE ...]

A page is a file of docs/how-to without its ending; by default all of them. Its `pip install` line
is run with the wheel in place of `parabolt`, and then its blocks. Needs what the tests need.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "how-to"
LIMIT_S = 300.0


def main() -> None:
    """Prints the times of each page; exits with status 1 if one fails or takes too long."""
    wheel, *names = sys.argv[1:]
    failed = False
    for name in names or sorted(page.stem for page in PAGES.glob("*.md")):
        with tempfile.TemporaryDirectory() as scratch:
            install_s, run_s, error = follow(name, Path(wheel).resolve(), Path(scratch))
        failed |= bool(error) or install_s + run_s > LIMIT_S
        print(
            f"{name:15s} installation {install_s:4.0f} s, page {run_s:4.0f} s  {error}", flush=True
        )
    sys.exit(failed)


def follow(name: str, wheel: Path, scratch: Path) -> tuple[float, float, str]:
    """Seconds of the installation and of the page, and what went wrong."""
    page = PAGES / f"{name}.md"
    tests = runpy.run_path(str(ROOT / "tests" / "docs" / "test_code_blocks.py"))
    wanted = re.findall(r"^pip install 'parabolt(\[.*?\])'$", page.read_text(), re.MULTILINE)
    home = scratch / "environment"
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    start = time.perf_counter()
    for extras in wanted or ["[report]"]:
        told = run([python, "-m", "pip", "install", "--quiet", f"{wheel}{extras}"], scratch)
        if told:
            return time.perf_counter() - start, 0.0, told
    if name == "own-optimizer":  # the page runs the contract's tests
        run([python, "-m", "pip", "install", "--quiet", "pytest"], scratch)
    installed = time.perf_counter()
    work = scratch / "work"
    work.mkdir()
    (work / "blocks.json").write_text(json.dumps(list(tests["blocks"](page))))
    told = run([python, "-c", tests["RUNNER"]], work)
    return installed - start, time.perf_counter() - installed, told


def run(command: list[object], cwd: Path) -> str:
    """What a command says if it fails, its last lines; nothing if it doesn't."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["PATH"] = os.pathsep.join([str(Path(str(command[0])).parent), environment["PATH"]])
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    return done.stderr[-1500:] if done.returncode else ""


if __name__ == "__main__":
    main()
