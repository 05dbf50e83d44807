"""The tables of docs/grid.md over the suite, from the published runs, worked out independently."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import parabolt
from parabolt.experiments.packed import published_files, read_packed
from parabolt.experiments.results import have_same_evaluations
from parabolt.experiments.run import execute
from parabolt.experiments.study import read_study
from parabolt.problems.suites import SUITES
from parabolt.tables.sources import USCALE, WITHOUT_OPTIMUM

ROOT = Path(__file__).parents[2]
RUNS = ROOT / "docs" / "data" / "uscale.parquet"
STUDY = ROOT / "benchmarks" / "studies" / "uscale.toml"
PAGE = (ROOT / "docs" / "grid.md").read_text(encoding="utf-8")


def rows_of(mark):
    """Heading and lines between two marks, as cells."""
    section = PAGE.split(f"<!-- {mark} -->")[1].split(f"<!-- /{mark} -->")[0]
    lines = [line.strip("| ").split(" | ") for line in section.splitlines() if line.strip()]
    return lines[0], lines[2:]


def final_regrets(path):
    """(problem, optimizer) to the final regret in % of each run, from the file's own columns."""
    data = pq.read_table(path, columns=["run", "throughput", "status"]).to_pydict()
    optima = {name: parabolt.load_problem(name).optimum.value for name in SUITES["all"]}
    best, found = {}, {}
    for text, throughput, status in zip(*data.values(), strict=True):
        best[text] = max(best.get(text, 0.0), throughput if status == "ok" else 0.0)
    for text, throughput in best.items():
        key = json.loads(text)["key"]
        regret = 100.0 * (1.0 - throughput / optima[key["problem"]])
        found.setdefault((key["problem"], key["optimizer"]), []).append(regret)
    return found


@pytest.fixture(scope="module")
def regrets():
    (grid,) = (path for path in published_files() if path.stem == "grid")
    return final_regrets(grid) | final_regrets(RUNS)


def test_all_instances(regrets):
    head, rows = rows_of("instances")
    methods = head[3:]
    assert len(methods) == 16
    assert [row[0] for row in rows] == ["pco32", "pco64", *USCALE]
    for name, n_candidates, share, *cells in rows:
        table = parabolt.load_table(name)
        assert int(n_candidates) == len(table)
        assert share == f"{100 * (~table.is_feasible).mean():.0f}"
        if name in WITHOUT_OPTIMUM:
            assert set(cells) == {"-"}
            continue
        means = [float(np.mean(regrets[name, method])) for method in methods]
        assert [cell.strip("*") for cell in cells] == [f"{mean:.1f}" for mean in means]
        best = [cell.startswith("**") for cell in cells]
        assert best == [f"{mean:.1f}" == f"{min(means):.1f}" for mean in means]


def test_the_suite_is_the_mean_over_its_problems(regrets):
    head, rows = rows_of("suite")
    assert head[:2] == ["optimizer", "final regret, %"]
    means = {
        row[0]: np.mean([np.mean(regrets[name, row[0]]) for name in SUITES["uscale"]])
        for row in rows
    }
    assert [row[1].split(" ")[0] for row in rows] == [f"{mean:.2f}" for mean in means.values()]
    assert list(means.values()) == sorted(means.values())


def test_the_runs_are_of_the_study_and_random_gives_them_again():
    study = read_study(STUDY)
    problems = [parabolt.load_problem(name) for name in study.problems]
    runs, failed = read_packed(RUNS)
    assert failed == []
    assert {run.key for run in runs} == {key for _, key in study.keys(problems)}
    by_name = {problem.name: problem for problem in problems}
    stored = [run for run in runs if run.key.optimizer == "random" and run.key.seed < 2]
    assert len(stored) == 2 * len(problems)
    for run in stored:
        assert have_same_evaluations(run, execute(by_name[run.key.problem], run.key))
