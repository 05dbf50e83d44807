import math

import numpy as np
import pytest

import parabolt
from parabolt.outcome import Outcome


def told(margin=None):
    problem = parabolt.ImputedProblem(parabolt.load_problem("pco64"))
    optimizer = parabolt.make_optimizer("ucbc", problem.space, seed=0)
    for row in np.random.default_rng(0).choice(780, 20, replace=False):
        configuration = problem.space.candidates[row]
        outcome = problem.evaluate(configuration)
        optimizer.tell(configuration, outcome if margin is None else Outcome.oom())
    return optimizer


@pytest.mark.parametrize("step", [0, 1, 30])
def test_choice_is_the_rule_written_out(step):
    optimizer = told()
    for _ in range(step):
        configuration = optimizer.ask()
        optimizer.tell(configuration, Outcome.ok(0.2, memory_margin=-0.2))
    assert optimizer.step == step
    s = optimizer.surrogate()
    width = math.sqrt(2 * math.log(8 * (step + 1) ** 2 * math.pi**2 / 0.6))
    best, value = None, -math.inf
    for row in optimizer.available_rows():
        if s.margin_mean[row] - width * s.margin_std[row] <= 0:
            bound = s.mean[row] + width * s.std[row]
            if bound > value:
                best, value = row, bound
    assert optimizer.space.row(optimizer.ask()) == best


def test_where_nothing_may_be_feasible_the_smallest_lower_bound_is_tried():
    optimizer = told(margin=0.2)
    s = optimizer.surrogate()
    s.margin_std[:] = 1e-3  # as if all were known to be out of memory
    s.margin_mean[:] = np.linspace(0.3, 0.1, 780)
    assert np.argmax(optimizer._acquisition(s)) == 779
