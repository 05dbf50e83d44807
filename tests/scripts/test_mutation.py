"""The script that measures the mutation score, on a project of one function."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
from mutants import mutants_of
from mutation import _PLUGIN, Laboratory, Verdict, table
from tests_by_line import TestsByLine, aligned

SOURCE = b'''"""A text."""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import numpy
LIMIT: int = 3

def clipped(value: int = 1 + 1) -> float:
    """Another text, 1 + 1."""
    if value > LIMIT:
        raise ValueError(f"too large by {value - LIMIT}")
    return min(value / 2, 7)

def unseen(a, b):
    return max(a, b)
'''
TESTS = """import time
from parabolt.rule import clipped, unseen

def test_small():
    assert clipped(2) == 1.0

def test_broken():
    assert clipped(2) == 2.0
"""


def described(mutant):
    return f"{mutant.kind}: {SOURCE[mutant.start : mutant.end].decode()} -> {mutant.text}"


def test_all_mutants_of_a_small_file():
    """Worked by hand: no text, no annotation, nothing for type checkers alone."""
    found = [described(m) for m in mutants_of(SOURCE, "rule.py")]
    assert found == [
        "constant: 3 -> (4)",
        "constant: 1 -> (2)",
        "arithmetic: 1 + 1 -> (1 - 1)",
        "constant: 1 -> (2)",
        "inverted: value > LIMIT -> (not (value > LIMIT))",
        "comparison: value > LIMIT -> (value >= LIMIT)",
        'removed: raise ValueError(f"too large by {value - LIMIT}") -> pass',
        "extremum: min(value / 2, 7) -> (max(value / 2, 7))",
        "arithmetic: value / 2 -> (value * 2)",
        "constant: 2 -> (3)",
        "constant: 7 -> (8)",
        "extremum: max(a, b) -> (min(a, b))",
    ]
    at_import = [m.is_run_at_import for m in mutants_of(SOURCE, "rule.py")]
    assert at_import == [True] * 4 + [False] * 8


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x[a:b]", "(x[a:b + 1])"),
        ("x[a:]", "(x[a + 1:])"),
        ("range(a, b)", "(range(a, b + 1))"),
        ("f(a, b, c)", "(f(b, a, c))"),
        ("-a", "(a)"),
        ("a and b", "(a or b)"),
        ("a if b else c", "(a if not b else c)"),
        ("a @ b", "(b @ a)"),
        ("True", "(False)"),
        ("0.0", "(1.0)"),
        ("np.minimum(a, b)", "(np.maximum(a, b))"),
        ("a is not None", "(a is None)"),
    ],
)
def test_each_kind_of_expression(before, after):
    source = f"y = {before}\n".encode()
    assert after in [m.text for m in mutants_of(source, "rule.py")]


def test_lines_of_a_text_that_changed():
    """A line that is new stands for the one before it."""
    assert aligned("a\nb\nc\n", "a\nnew\nb\nc\n") == {1: 1, 2: 1, 3: 2, 4: 3}
    assert aligned("a\nb\nc\n", "a\nc\n") == {1: 1, 2: 3}


@pytest.fixture
def laboratory(tmp_path):
    (tmp_path / "src" / "parabolt").mkdir(parents=True)
    (tmp_path / "src" / "parabolt" / "__init__.py").touch()
    (tmp_path / "src" / "parabolt" / "rule.py").write_bytes(SOURCE)
    (tmp_path / "test_rule.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "wanted_tests.py").write_text(_PLUGIN, encoding="utf-8")
    file = "src/parabolt/rule.py"
    run = {file: 1 << 9 | 1 << 11 | 1 << 12}
    names = ("test_rule.py::test_gone", "test_rule.py::test_broken", "test_rule.py::test_small")
    tests = TestsByLine(
        seconds=dict(zip(names, (0.1, 0.2, 0.3), strict=True)),
        lines=dict.fromkeys(names, run),
        sources={file: SOURCE.decode()},
    )
    return Laboratory(tmp_path, tests, budget_s=10.0)


def verdict_of(laboratory, kind, text):
    file = "src/parabolt/rule.py"
    (mutant,) = (m for m in mutants_of(SOURCE, file) if m.kind == kind and text in m.text)
    verdict = laboratory.try_out(mutant)
    assert (laboratory.root / file).read_bytes() == SOURCE
    return verdict


def test_a_mutant_is_killed_by_a_test_that_passes_without_it(laboratory):
    """Of the tests that cover it one is gone, and one fails with or without the change."""
    found = verdict_of(laboratory, "arithmetic", "(value * 2)")
    assert (found.outcome, found.test) == ("killed", "test_rule.py::test_small")
    assert laboratory.healthy["test_rule.py::test_broken"] is False
    assert verdict_of(laboratory, "constant", "(8)").outcome == "survived"
    assert verdict_of(laboratory, "extremum", "min(a").outcome == "uncovered"


@pytest.mark.slow
def test_a_mutant_that_hangs_is_killed(laboratory, monkeypatch):
    monkeypatch.setattr("mutation._START_S", 5.0)
    path = laboratory.root / "src/parabolt/rule.py"
    source = SOURCE.replace(b"return min(", b"while value < 0: pass\n    return min(")
    path.write_bytes(source)
    laboratory.tests.sources["src/parabolt/rule.py"] = source.decode()
    (mutant,) = (
        m for m in mutants_of(source, "src/parabolt/rule.py") if "not (value < 0" in m.text
    )
    found = laboratory.try_out(mutant)
    assert (found.outcome, found.test) == ("killed", "test_rule.py::test_small")


def test_the_table_counts_what_no_test_covers_as_survived():
    a, b = mutants_of(SOURCE, "src/parabolt/a/x.py"), mutants_of(SOURCE, "src/parabolt/b.py")
    verdicts = [Verdict(a[0], "killed"), Verdict(a[1], "uncovered"), Verdict(b[0], "survived")]
    assert table(verdicts).splitlines()[2:] == [
        "| a | 2 | 1 | 1 | 50% |",
        "| b | 1 | 1 | 0 | 100% |",
        "| all | 3 | 2 | 1 | 67% |",
    ]
