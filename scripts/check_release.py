"""Builds a release and tries it as a user would: `python scripts/check_release.py [OUT_DIR]`.

Wheel and source distribution, `twine check`, what is in them, installation of the wheel into an
empty environment, and `parabolt bench` from there, in a directory without the sources. Needs the
extra `release`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Runs every check; the first that fails ends the script with its output."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(scratch) / "dist"
        run(sys.executable, "-m", "build", "--outdir", str(out), str(ROOT))
        (wheel,), (source,) = out.glob("*.whl"), out.glob("*.tar.gz")
        run(sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(source))
        check_contents(wheel, source)
        check_installed(wheel, Path(scratch))
        print(f"{wheel.name} and {source.name} are fit to be released")


def check_contents(wheel: Path, source: Path) -> None:
    """Types, tables and instances are in the wheel; all else is in the source."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    for name in (
        "py.typed",
        "tables/embedded/pco32.parquet",
        "instances/catalogue/pco64.toml",
        "experiments/published/grid.parquet",
    ):
        expect(f"parabolt/{name}" in names, f"{name} in {wheel.name}")
    expect(
        all(n.startswith(("parabolt/", "parabolt-")) for n in names), "nothing else in the wheel"
    )
    with tarfile.open(source) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    for name in (
        "tests/test_layers.py",
        "docs/index.md",
        "examples/01_search_by_hand.py",
        "examples/08_landscape.ipynb",
        "data/pco4-cpu/sweep.csv",
        "benchmarks/speed.py",
        "CHANGELOG.md",
        "NOTICE",
        "mkdocs.yml",
        "mkdocs_hooks.py",
        "Makefile",
    ):
        expect(name in inside, f"{name} in {source.name}")


def check_installed(wheel: Path, scratch: Path) -> None:
    """The wheel in an empty environment: no optional library, and the command works."""
    home = scratch / "environment"
    venv.create(home, with_pip=True)
    binaries = home / ("Scripts" if os.name == "nt" else "bin")
    run(str(binaries / "python"), "-m", "pip", "install", "--quiet", str(wheel))
    elsewhere = scratch / "elsewhere"
    elsewhere.mkdir()
    arguments = ("bench", "pco32", "--optimizers", "random,logeic", "--seeds", "1", "--json")
    told = run(str(binaries / "parabolt"), *arguments, cwd=elsewhere)
    scores = json.loads(told)["leaderboard"]
    expect({score["optimizer"] for score in scores} == {"random", "logeic"}, "a leaderboard")
    told = run(
        str(binaries / "python"),
        "-c",
        "import parabolt; print(parabolt.__version__)",
        cwd=elsewhere,
    )
    expect(f"-{told.strip()}-" in wheel.name, "the version of the wheel")


def run(*command: str, cwd: Path | None = None) -> str:
    """Output of a command, without this environment's path; ends the script if it fails."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    expect(done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def expect(holds: bool, what: str) -> None:  # noqa: FBT001 - reads like an assertion
    """Ends the script unless something holds."""
    if not holds:
        sys.exit(f"error: expected {what}")


if __name__ == "__main__":
    main()
