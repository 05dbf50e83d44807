"""Figures of docs/transfer.md, of the methods whose order of trials history alone decides."""

from pathlib import Path

import numpy as np
import pytest

import parabolt
from parabolt.experiments.study import read_study
from parabolt.experiments.transfer import past_trials
from parabolt.optimizers.registry import make_optimizer

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "transfer.md").read_text(encoding="utf-8")
N_TRIALS = 20


def rows_of(split):
    """Method to the cells of its line."""
    section = PAGE.split(f"<!-- {split} -->")[1].split(f"<!-- /{split} -->")[0]
    lines = [line.strip("| ").split(" | ") for line in section.splitlines() if "%" in line]
    return {cells[0]: cells[1:] for cells in lines[1:]}


def regrets(problem, protocol, method):
    """Regret in % of the optimum after each trial, told that a trial failed and no more."""
    past = past_trials(problem.instance, protocol).evidence
    optimizer = make_optimizer(method, problem.space, history=past)
    rows = problem.space.rows(optimizer.ask(N_TRIALS))
    table = problem.table
    speed = np.where(table.is_feasible, table.outcomes.throughput, 0.0)[rows]
    return 100.0 * (1.0 - np.maximum.accumulate(speed) / problem.optimum.value)


@pytest.mark.parametrize("split", ["instance", "model", "small"])
def test_the_page_is_of_the_study(split):
    study = read_study(ROOT / "benchmarks" / "studies" / f"transfer_{split}.toml")
    rows = rows_of(split)
    assert set(rows) == {choice.label for choice in study.optimizers}
    problems = [parabolt.load_problem(name) for name in study.problems]
    protocol = study.protocol_of(problems[0].name)
    assert protocol.n_evaluations == N_TRIALS
    # Small clusters of the 80B model have so few finished runs that the rest is tried at random.
    for method in ("best-of-history", "mean-rank")[split == "small" :]:
        found = np.array([regrets(problem, protocol, method) for problem in problems])
        shown = [f"{found[:, n - 1].mean():.1f}" for n in (1, 5, 20)]
        assert rows[method][:3] == shown
        for within, cell in ((5.0, rows[method][3]), (1.0, rows[method][4])):
            is_close = found <= within + 1e-9
            assert cell.split(" %, ")[0] == f"{100.0 * is_close.any(axis=1).mean():.0f}"


def test_parabolt_learns_from_other_instances():
    for split in ("instance", "model", "small"):
        rows = rows_of(split)
        warm, cold, at_random = (
            float(rows[name][2]) for name in ("parabolt", "parabolt, cold", "random")
        )
        assert warm < cold < at_random
