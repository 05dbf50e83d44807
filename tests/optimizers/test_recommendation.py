"""Recommendations run, and are the best that is known, at any scale of throughput."""

import numpy as np
import pytest

import parabolt
from parabolt.outcome import Outcome
from parabolt.problems.imputation import ImputedProblem

OWN = [
    name
    for name in parabolt.optimizer_names()
    if name not in ("tpe", "cmaes", "best-of-history", "mean-rank", "parabolt")
]
#: Factors of throughput without rounding: 8.7e-19 and 1.2e18.
SCALES = (2.0**-60, 2.0**60)


def run(name, scale, n=18):
    """Rows asked and recommended in a run whose throughputs are all multiplied by a factor."""
    problem = ImputedProblem(parabolt.load_problem("pco64"))
    optimizer = parabolt.make_optimizer(name, problem.space, seed=1, n_initial=8)
    asked, recommended = [], []
    for _ in range(n):
        configuration = optimizer.ask()
        told = problem.evaluate(configuration)
        scaled = Outcome(
            told.status, told.throughput * scale, throughput_source=told.throughput_source,
            memory_margin=told.memory_margin,
        )  # fmt: skip
        optimizer.tell(configuration, scaled)
        asked.append(problem.space.row(configuration))
        best = optimizer.recommend()
        recommended.append(None if best is None else problem.space.row(best))
    return asked, recommended


@pytest.mark.parametrize("name", [name for name in OWN if "+" not in name and name != "random"])
def test_a_scale_of_throughput_changes_nothing(name):
    expected = run(name, 1.0)
    for scale in SCALES:
        assert run(name, scale) == expected


@pytest.mark.parametrize("name", OWN)
def test_the_best_finished_run_is_recommended(name):
    n_initial = {} if name == "random" else {"n_initial": 5}
    problem = parabolt.load_problem("pco64")
    outcomes = problem.evaluate_many(problem.space.encoded)
    speed = np.where(outcomes.is_feasible, outcomes.throughput, -np.inf)
    optimizer = parabolt.make_optimizer(name, problem.space, seed=0, **n_initial)
    best = -np.inf
    for _ in range(14):
        configuration = optimizer.ask()
        optimizer.tell(configuration, problem.evaluate(configuration))
        best = max(best, speed[problem.space.row(configuration)])
        recommended = optimizer.recommend()
        if np.isinf(best):
            assert recommended is None
        else:
            assert speed[problem.space.row(recommended)] == best
