"""Scores over problems, by hand: regrets in percent, evaluations as fractions of the candidates."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import parabolt
from parabolt.analysis.suite_scores import compare_over_problems, problem_scores, suite_scores
from parabolt.errors import UnknownNameError
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.run import execute
from parabolt.experiments.run_key import RunKey
from parabolt.outcome import Outcome, Outcomes
from parabolt.problems.suites import SUITES, load_suite, problems_of

BASE = parabolt.load_problem("uscale-8b-8")


@pytest.fixture(scope="module")
def template():
    protocol = Protocol(n_evaluations=2, n_initial=2, min_feasible=1)
    return execute(BASE, RunKey.of(BASE, "random", 0, protocol))


@pytest.fixture
def make_run(template):
    """A run of four evaluations, two of them the design, whose optimum is 10 iterations/s."""

    def make(problem, optimizer, seed, throughputs):
        outcomes = [Outcome.oom() if t is None else Outcome.ok(t) for t in throughputs]
        key = replace(template.key, problem=problem, optimizer=optimizer, seed=seed)
        rows = {name: getattr(template, name)[:4] for name in ("observed", "recommended")}
        return replace(
            template, key=key, optimum=10.0, n_initial=2, outcomes=Outcomes.of(outcomes), **rows
        )

    return make


def test_hand_worked_scores(make_run):
    runs = [
        # Regrets 5, 5, 2, 0: the end 0 %, the area (20 + 0) / 2 = 10 %, close at the fourth.
        make_run("a", "x", 0, [5, None, 8, 10]),
        # Regrets 10, 10, 10, 6: the end 60 %, the area (100 + 60) / 2 = 80 %, never close.
        make_run("a", "x", 1, [None, None, None, 4]),
        # 9.9 is within 1 % of 10: close at the third.
        make_run("b", "x", 0, [2, 3, 9.9, 5]),
    ]
    a, b = problem_scores(runs, {"a": 8, "b": 40})
    assert (a.problem, a.optimizer, a.n_runs, a.n_close) == ("a", "x", 2, 1)
    assert a.regret_percent == pytest.approx(30.0)
    assert a.area_percent == pytest.approx(45.0)
    assert a.budget_fraction == 4 / 8
    assert a.close_fraction == (4 + 4) / 2 / 8
    assert b.regret_percent == pytest.approx(1.0)
    assert b.area_percent == pytest.approx(1.0)
    assert (b.budget_fraction, b.close_fraction, b.n_close) == (4 / 40, 3 / 40, 1)
    (suite,) = suite_scores([a, b])
    assert (suite.optimizer, suite.n_problems) == ("x", 2)
    assert suite.regret_percent == pytest.approx(15.5)  # a problem counts once, not a run
    assert suite.area_percent == pytest.approx(23.0)
    assert suite.budget_fraction == pytest.approx((0.5 + 0.1) / 2)
    assert suite.close_fraction == pytest.approx((0.5 + 0.075) / 2)
    assert suite.close_share == pytest.approx((0.5 + 1.0) / 2)
    assert suite.regret_low_percent == pytest.approx(1.0)
    assert suite.regret_high_percent == pytest.approx(30.0)


def test_suite_scores_are_sorted_and_pairs_are_tested_over_problems(make_run):
    worse, better = [5, None, 6, 7], [5, None, 8, 10]
    runs = [
        make_run(f"p{i}", name, seed, figures)
        for i in range(6)
        for name, figures in (("worse", worse), ("better", better))
        for seed in range(3)
    ]
    scores = problem_scores(runs, {f"p{i}": 8 for i in range(6)})
    assert [s.optimizer for s in suite_scores(scores)] == ["better", "worse"]
    (pair,) = compare_over_problems(scores)
    assert (pair.first, pair.second, pair.n_problems, pair.n_first_better) == (
        "worse", "better", 6, 0,
    )  # fmt: skip
    # Six of six signs alike: 2 / 2^6, whatever the number of seeds.
    assert pair.wilcoxon_p == pair.holm_p == pytest.approx(2 / 64)


def test_optimizers_without_a_common_problem_are_not_compared(make_run):
    runs = [make_run("a", "x", 0, [1, 2, 3, 4]), make_run("b", "y", 0, [1, 2, 3, 4])]
    assert compare_over_problems(problem_scores(runs, {"a": 8, "b": 8})) == []


def test_suites():
    assert [len(names) for names in SUITES.values()] == [19, 21]
    suite = load_suite("all")
    assert [p.name for p in suite.problems[:3]] == ["pco32", "pco64", "uscale-1b-8"]
    assert all(np.isfinite(problem.optimum.value) for problem in suite.problems)
    assert problems_of(["pco32", "all", "x.csv"]) == (*SUITES["all"], "x.csv")
    with pytest.raises(UnknownNameError, match=r"unknown suite 'uscal'.*did you mean 'uscale'"):
        load_suite("uscal")


def test_bench_takes_a_suite(tmp_path):
    command = [Path(sys.executable).with_name("parabolt"), "bench", "uscale"]
    options = ["--optimizers", "random", "--seeds", "1", "--jobs", "1", "--json"]
    done = subprocess.run(
        [*command, *options], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert [score["problem"] for score in found["problems"]] == list(SUITES["uscale"])
    (suite,) = found["suite"]
    assert suite["n_problems"] == 19
    mean = np.mean([score["regret_percent"] for score in found["problems"]])
    assert suite["regret_percent"] == pytest.approx(mean)
    assert found["comparisons"] == []
