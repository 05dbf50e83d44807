"""Mutation score: how many small faults in the package its quick tests notice.

    python scripts/mutation.py --sample 200
    python scripts/mutation.py --package optimizers --sample 20 --seed 1

Draws a seeded random sample of the mutants of `src/parabolt`, or of one package or file below it
(`--package`), and runs the quick tests that cover the changed line on a copy of the project,
fastest first, until one fails. A mutant counts as killed if a test fails that passes without the
change, or if the tests take several times as long. It survives if all pass that fit into
`--budget` seconds, or if no test covers it.

Which tests run which line is recorded by one run of the quick tests, and kept in the user's cache
folder. Before each use the tests of the package, or those below `--tests`, are recorded again where
they have changed. Recording needs the library `coverage`.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mutants import Mutant, mutants_of
from tests_by_line import TestsByLine

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path("src/parabolt")
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "parabolt-mutation"
#: Tests of the first pytest process of a mutant, in recorded seconds; most mutants need no second.
_FIRST_S = 10.0
#: A process of pytest may take this many seconds, and this many times as long as recorded.
_START_S, _SLOWER = 60.0, 5.0
#: Plugins of pytest that the tests need; loading all that are installed takes seconds.
_PLUGINS = ("pytest_timeout", "_hypothesis_pytestplugin", "wanted_tests")


@dataclass
class Verdict:
    """What became of a mutant: `killed`, `survived` or `uncovered`, and by which test."""

    mutant: Mutant
    outcome: str
    test: str = ""


@dataclass
class Laboratory:
    """A copy of the project in which mutants are tried.

    Attributes:
        root: The copy.
        tests: Which tests run which line.
        budget_s: Recorded seconds of tests per mutant.
        healthy: Tests that were seen to pass, or to fail, without any change.
    """

    root: Path
    tests: TestsByLine
    budget_s: float
    healthy: dict[str, bool] = field(default_factory=dict)

    def try_out(self, mutant: Mutant) -> Verdict:
        """Runs the tests that cover a mutant until one fails that passes without it."""
        path = self.root / mutant.path
        source = path.read_bytes()
        lines = None
        if not mutant.is_run_at_import:
            lines = range(mutant.first_line, mutant.last_line + 1)
        covering = self.tests.tests_of(mutant.path, source.decode(), lines)
        if not covering:
            return Verdict(mutant, "uncovered")
        for batch in self._batches(covering):
            waiting = [test for test in batch if self.healthy.get(test, True)]
            while waiting:
                path.write_bytes(mutant.applied(source))
                failed = self._first_failure(waiting)
                path.write_bytes(source)
                if failed is None:
                    break
                if self._is_healthy(failed):
                    return Verdict(mutant, "killed", failed)
                waiting.remove(failed)
        return Verdict(mutant, "survived")

    def _batches(self, tests: list[str]) -> Iterator[list[str]]:
        total = list(itertools.accumulate(self.tests.seconds[test] for test in tests))
        first = [test for test, s in zip(tests, total, strict=True) if s <= _FIRST_S]
        rest = [t for t, s in zip(tests, total, strict=True) if _FIRST_S < s <= self.budget_s]
        yield from filter(None, (first, rest or tests[len(first) : len(first) + 1]))

    def _is_healthy(self, test: str) -> bool:
        if test not in self.healthy:
            self.healthy[test] = self._first_failure([test]) is None
        return self.healthy[test]

    def _first_failure(self, tests: list[str]) -> str | None:
        """The first of these tests that fails or hangs; None if all pass or are gone."""
        (self.root / "wanted.txt").write_text("\n".join(tests), encoding="utf-8")
        started = self.root / "started.txt"
        started.write_text(tests[0], encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        for plugin in _PLUGINS:
            command += ["-p", plugin]
        command.append("--hypothesis-seed=0")
        files = dict.fromkeys(test.split("::")[0] for test in tests)
        command += [file for file in files if (self.root / file).exists()]
        limit_s = _START_S + _SLOWER * sum(self.tests.seconds[test] for test in tests)
        process = subprocess.Popen(
            command, cwd=self.root, env=self._environment(), start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            status = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            status = process.wait()
        is_fine = status in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        return None if is_fine else started.read_text(encoding="utf-8")

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(self.root / "src"), str(self.root)]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }


def copied_project(target: Path) -> Path:
    """A copy of all files that git knows or would add, with the plugin for pytest."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout.decode()
    for name in listed.split("\0"):
        if name and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    (target / "wanted_tests.py").write_text(_PLUGIN, encoding="utf-8")
    return target


def all_mutants(below: str) -> list[Mutant]:
    """The mutants of a package or file below `src/parabolt`; of all for an empty text."""
    start = ROOT / PACKAGE / below.replace("parabolt/", "")
    files = sorted(start.rglob("*.py")) if start.is_dir() else [start.with_suffix(".py")]
    if missing := [file for file in files if not file.exists()] or not files:
        raise SystemExit(f"--package: expected a folder or file of {PACKAGE}, got {missing}")
    names = [str(file.relative_to(ROOT)) for file in files]
    return [m for name in names for m in mutants_of((ROOT / name).read_bytes(), name)]


def package_of(mutant: Mutant) -> str:
    """The folder or file below `src/parabolt` that a mutant belongs to."""
    return Path(mutant.path).relative_to(PACKAGE).parts[0].removesuffix(".py")


def table(verdicts: list[Verdict]) -> str:
    """Survival per package, as Markdown."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for verdict in verdicts:
        groups[package_of(verdict.mutant)].append(verdict.outcome)
    rows = [*sorted(groups.items()), ("all", [verdict.outcome for verdict in verdicts])]
    lines = [
        "| package | mutants | survived | of these not covered | survival |",
        "|---|---|---|---|---|",
    ]
    for name, outcomes in rows:
        uncovered = outcomes.count("uncovered")
        survived = uncovered + outcomes.count("survived")
        share = f"{survived / max(len(outcomes), 1):.0%}"
        lines.append(f"| {name} | {len(outcomes)} | {survived} | {uncovered} | {share} |")
    return "\n".join(lines)


def recorded_tests(cache: Path, below: list[str]) -> TestsByLine:
    """What is known of the tests, brought up to date for the folders or files `below`."""
    tests = TestsByLine.load(cache)
    folders = defaultdict(list)
    for file in tests.unrecorded(ROOT, below):
        folders[str(Path(file).parent)].append(file)
    for folder, files in folders.items():
        print(f"recording which lines {len(files)} files of {folder} run ...", flush=True)
        tests.record(ROOT, files)
        tests.save(cache)
    return tests


def main() -> None:
    """Tries a sample of mutants; prints each survivor as it is found, and the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--package", default="", help="folder or file below src/parabolt")
    parser.add_argument("--sample", type=int, default=200, help="number of mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of tests per mutant")
    parser.add_argument(
        "--tests",
        nargs="*",
        metavar="PATH",
        help="tests to record before, if they changed; by default those of the package",
    )
    parser.add_argument("--cache", type=Path, default=_CACHE / "tests_by_line.json.gz")
    options = parser.parse_args()
    mutants = all_mutants(options.package)
    own = Path("tests") / Path(options.package).parts[0] if options.package else Path("tests")
    below = options.tests if options.tests is not None else [str(own)]
    tests = recorded_tests(options.cache, below)
    sample = random.Random(options.seed).sample(mutants, min(options.sample, len(mutants)))
    verdicts = []
    with tempfile.TemporaryDirectory() as scratch:
        laboratory = Laboratory(copied_project(Path(scratch)), tests, options.budget)
        for mutant in sample:
            verdict = laboratory.try_out(mutant)
            verdicts.append(verdict)
            if verdict.outcome != "killed":
                source = (laboratory.root / mutant.path).read_bytes()
                print(f"{verdict.outcome:9s} {mutant.described(source)}", flush=True)
    print(f"\n{table(verdicts)}\n{len(mutants)} mutants in all, seed {options.seed}")


#: Runs the wanted tests alone, in the order in which they are named, and writes down the last one
#: that began.
_PLUGIN = """
import pathlib
_ROOT = pathlib.Path(__file__).parent

def pytest_collection_modifyitems(items):
    wanted = (_ROOT / "wanted.txt").read_text(encoding="utf-8").split("\\n")
    place = {test: i for i, test in enumerate(wanted)}
    items[:] = sorted((i for i in items if i.nodeid in place), key=lambda i: place[i.nodeid])

def pytest_runtest_logstart(nodeid):
    (_ROOT / "started.txt").write_text(nodeid, encoding="utf-8")
"""


if __name__ == "__main__":
    main()
