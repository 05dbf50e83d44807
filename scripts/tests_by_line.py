"""Which tests run which line of the package, recorded once and kept in the user's cache folder."""

from __future__ import annotations

import ast
import difflib
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Loaded by every process of the recording: counts lines under the name of the test that runs.
_START_UP = "import coverage\ncoverage.process_startup()\n"
_SETTINGS = """[run]
source_pkgs = parabolt
parallel = true
context = ${{PYTEST_CURRENT_TEST-}}
concurrency = thread
data_file = {data}
disable_warnings = no-data-collected, module-not-imported, module-not-measured
"""
#: Loaded by pytest itself: tells the recorder which test runs, and writes down how long each took.
_PLUGIN = """
import json, os, coverage
_seconds = {}

def pytest_runtest_logstart(nodeid):
    coverage.Coverage.current().switch_context(nodeid)

def pytest_runtest_logreport(report):
    passed, seconds = _seconds.get(report.nodeid, (True, 0.0))
    _seconds[report.nodeid] = (passed and report.passed, seconds + report.duration)

def pytest_sessionfinish():
    with open(os.environ["PARABOLT_SECONDS"], "w") as file:
        json.dump(_seconds, file)
"""
_PHASE = re.compile(r" \((setup|call|teardown)\)$")


@dataclass
class TestsByLine:
    """What was recorded; no test itself, whatever pytest takes its name for.

    Attributes:
        seconds: Duration of each test that passed.
        lines: Per test and file of the package, the lines that it ran, as bits of a number.
        sources: Text of each file of the package when it was recorded.
        hashes: SHA-256 of each test file that was recorded.
    """

    __test__ = False
    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, dict[str, int]] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> TestsByLine:
        """What the file holds; nothing if there is none."""
        if not path.exists():
            return cls()
        document = json.loads(gzip.decompress(path.read_bytes()))
        lines = {
            test: {file: int(bits, 16) for file, bits in files.items()}
            for test, files in document.pop("lines").items()
        }
        return cls(lines=lines, **document)

    def save(self, path: Path) -> None:
        """Writes the file as a whole."""
        lines = {
            test: {file: f"{bits:x}" for file, bits in files.items()}
            for test, files in self.lines.items()
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(gzip.compress(json.dumps({**vars(self), "lines": lines}).encode()))
        part.replace(path)

    def unrecorded(self, root: Path, below: list[str]) -> list[str]:
        """Test files that are new or have changed, among files or in folders `below` the root."""
        paths = [root / name for name in below]
        files = [f for path in paths for f in (path, *sorted(path.rglob("test_*.py")))]
        names = dict.fromkeys(str(file.relative_to(root)) for file in files if file.is_file())
        return [name for name in names if self.hashes.get(name) != _hash(root / name)]

    def record(self, root: Path, test_files: list[str]) -> None:
        """Runs the quick tests of these files once and remembers what they ran.

        Raises:
            SystemExit: If the library `coverage` is not installed.
        """
        try:
            import coverage
        except ImportError as error:
            raise SystemExit("expected the library coverage; try: pip install coverage") from error
        with tempfile.TemporaryDirectory() as scratch:
            _run_recorded(root, Path(scratch), test_files)
            data = coverage.CoverageData(str(Path(scratch) / "data"))
            recorder = coverage.Coverage(data_file=str(Path(scratch) / "data"))
            recorder.combine([scratch])
            data.read()
            seconds = json.loads((Path(scratch) / "seconds.json").read_text(encoding="utf-8"))
            self._forget(test_files)
            self._take(root, data, seconds)
        self.hashes |= {file: _hash(root / file) for file in test_files}

    def _forget(self, test_files: list[str]) -> None:
        known = set(test_files)
        for test in [test for test in self.seconds if test.split("::")[0] in known]:
            del self.seconds[test]
            self.lines.pop(test, None)

    def _take(self, root: Path, data: Any, seconds: dict[str, tuple[bool, float]]) -> None:
        self.seconds |= {test: taken for test, (passed, taken) in seconds.items() if passed}
        for path in data.measured_files():
            if not Path(path).is_relative_to(root):
                continue
            file = str(Path(path).relative_to(root))
            source = Path(path).read_text(encoding="utf-8")
            if file in self.sources and self.sources[file] != source:
                self._realign(file, source)
            self.sources[file] = source
            for line, contexts in data.contexts_by_lineno(path).items():
                for test in {_PHASE.sub("", context) for context in contexts} & set(self.seconds):
                    files = self.lines.setdefault(test, {})
                    files[file] = files.get(file, 0) | 1 << line

    def _realign(self, file: str, source: str) -> None:
        """Moves what is known of a file to the lines of its new text."""
        now = {old: new for new, old in aligned(self.sources[file], source).items()}
        for files in self.lines.values():
            if bits := files.get(file):
                files[file] = sum(1 << now[old] for old in now if bits >> old & 1)

    def tests_of(self, file: str, source: str, lines: range | None) -> list[str]:
        """Tests that run one of the lines of a file, fastest first.

        Args:
            file: The file.
            source: Its text as it is now.
            lines: Lines of this text; None for those of all its functions.
        """
        if file not in self.sources:
            return []
        then = aligned(self.sources[file], source)
        wanted = sum(1 << then[n] for n in lines or lines_of_functions(source) if n in then)
        tests = [test for test, files in self.lines.items() if files.get(file, 0) & wanted]
        return sorted(tests, key=lambda test: (self.seconds[test], test))


def aligned(old: str, new: str) -> dict[int, int]:
    """Line numbers of a text as it is now, to those of the same lines as it was.

    A line that is new stands for the last one before it that isn't.
    """
    before, after = old.splitlines(), new.splitlines()
    pairs: dict[int, int] = {}
    for a, b, size in difflib.SequenceMatcher(
        None, before, after, autojunk=False
    ).get_matching_blocks():
        pairs |= {b + i + 1: a + i + 1 for i in range(size)}
    last = 1
    for line in range(1, len(after) + 1):
        last = pairs.setdefault(line, last)
    return pairs


def lines_of_functions(source: str) -> list[int]:
    """Lines inside of functions."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, functions)]
    inside = {n for f in nodes for n in range(f.body[0].lineno, (f.end_lineno or 0) + 1)}
    return sorted(inside)


def _run_recorded(root: Path, scratch: Path, test_files: list[str]) -> None:
    settings = scratch / "coverage.ini"
    settings.write_text(_SETTINGS.format(data=scratch / "data"), encoding="utf-8")
    (scratch / "sitecustomize.py").write_text(_START_UP, encoding="utf-8")
    (scratch / "parabolt_recorder.py").write_text(_PLUGIN, encoding="utf-8")
    path = os.pathsep.join([str(scratch), str(root / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        "COVERAGE_PROCESS_START": str(settings),
        "PARABOLT_SECONDS": str(scratch / "seconds.json"),
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "parabolt_recorder"]
    command += ["-p", "no:cacheprovider", "--hypothesis-seed=0", *test_files]
    subprocess.run(command, cwd=root, env=environment, check=False)


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
