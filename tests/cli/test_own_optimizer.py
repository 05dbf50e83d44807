"""`--optimizers module:Class`, as documented: twenty lines, in bench and in a study."""

import json

import pytest

from command_line import parabolt

MINE = '''
import numpy as np

import parabolt


class Neighbours(parabolt.Optimizer):
    """Goes on to an untried neighbour of the best candidate so far."""

    def __init__(self, space, *, radius=1, **options):
        super().__init__(space, **options)
        self.radius = radius

    def _next_row(self, available):
        best = self.history.best_feasible_row()
        if best is None:
            return self._random_row(available)
        steps = np.abs(self.space.encoded[available] - self.space.encoded[best]).sum(axis=1)
        return self._random_row(available[steps <= max(self.radius, steps.min())])


class Crash(parabolt.Optimizer):
    def _next_row(self, available):
        raise RuntimeError("own mistake")


class Unfinished(parabolt.Optimizer):
    pass


NotAClass = 3
'''


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "broken.py").write_text("import nothing_of_that_name\n")
    (tmp_path / "half.py").write_text("def f(:\n")
    return tmp_path


def test_bench_beside_a_built_in(folder):
    names = "random,mine:Neighbours"
    arguments = ("bench", "pco32", "--optimizers", names, "--seeds", "2", "--json")
    done = parabolt(*arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    scores = json.loads(done.stdout)["leaderboard"]
    assert {score["optimizer"] for score in scores} == {"random", "mine:Neighbours"}
    assert "2 of 2" not in done.stderr
    again = parabolt(*arguments, cwd=folder)
    assert json.loads(again.stdout)["leaderboard"] == scores


def test_results_of_edited_code_are_not_mixed_with_older_ones(folder):
    arguments = ("bench", "pco32", "--optimizers", "mine:Neighbours", "--seeds", "1")
    assert parabolt(*arguments, cwd=folder).returncode == 0
    (folder / "mine.py").write_text(MINE.replace("radius=1", "radius=2"))
    done = parabolt(*arguments, cwd=folder)
    assert done.returncode == 2
    assert "holds results of another mine:Neighbours" in done.stderr
    assert done.stderr.count("\n") == 1


def test_study_with_options_and_label(folder):
    (folder / "s.toml").write_text(
        'problems = ["pco32"]\nseeds = 1\n[protocol]\nn_evaluations = 4\n'
        "[[optimizers]]\n"
        'name = "mine:Neighbours"\nlabel = "wide"\noptions = { radius = 3 }\n'
    )
    done = parabolt("study", "run", "s.toml", cwd=folder)
    assert done.stdout == "1 of 1 runs done, 0 failed\n", done.stderr
    assert len(list((folder / "runs" / "s" / "runs").glob("pco32-wide-000-*.parquet"))) == 1
    resumed = parabolt("study", "resume", "runs/s", cwd=folder)
    assert resumed.stdout == "1 of 1 runs done, 0 failed\n", resumed.stderr


def test_a_mistake_in_a_run_is_told_with_its_reason(folder):
    words = ("bench", "pco32", "--optimizers", "mine:Crash", "--seeds", "1", "--out", "x")
    done = parabolt(*words, cwd=folder)
    assert done.returncode == 1
    (failure,) = (folder / "x" / "failed").glob("*.json")
    reason = json.loads(failure.read_text())["reason"]
    assert reason.startswith("RuntimeError: own mistake (mine.py, line ")
    assert "x: 0 of 1 runs; 1 failed: RuntimeError: own mistake" in done.stdout.replace(
        "mine:Crash", "x"
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent:A", "optimizer 'absent:A': expected module:Class, got ModuleNotFoundError"),
        ("mine:Absent", "got AttributeError: module 'mine' has no attribute 'Absent'"),
        (
            "mine:NotAClass",
            "expected a subclass of parabolt.Optimizer, a function f(space, history, rng), or an",
        ),
        ("broken:A", "No module named 'nothing_of_that_name'"),
        ("half:A", "SyntaxError"),
        (":A", "expected module:Class, got ValueError"),
        ("mine:", "expected module:Class, got AttributeError"),
        ("mine:Unfinished", "_next_row"),
        ("mine", "unknown optimizer 'mine'"),
    ],
)
def test_mistakes_are_one_line(folder, name, message):
    done = parabolt("bench", "pco32", "--optimizer", name, "--seeds", "1", cwd=folder)
    assert done.returncode == 2
    assert done.stdout == ""
    assert message in done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
