"""ADMMBO on 12 candidates, followed step by step by a second implementation in plain loops."""

import numpy as np
import pytest
from scipy.stats import norm

import parabolt
from parabolt.optimizers.published.admm import AdmmState, best_in_data, feasibility_improvement
from parabolt.outcome import Outcome


def small_space(seed=0, n=12):
    problem = parabolt.load_problem("pco64")
    feasible = problem.evaluate_many(problem.space.encoded).is_feasible
    rng = np.random.default_rng(seed)
    rows = np.concatenate([
        rng.choice(np.flatnonzero(feasible), n - 4, replace=False),
        rng.choice(np.flatnonzero(~feasible), 4, replace=False),
    ])  # fmt: skip
    space = parabolt.SearchSpace(problem.instance, problem.space.encoded[np.sort(rows)])
    return parabolt.ImputedProblem(problem), space


class Reference:
    """Alternation and acquisition, written from the paper for one candidate at a time."""

    def __init__(self, U, start):
        self.U = U
        self.x = self.z = U[start]
        self.u = np.zeros(U.shape[1])
        self.on_objective, self.left, self.first = True, 10, True

    def choose(self, surrogate, rows, y, feasible):
        f = -y
        scale = f.max() - f.min()
        rho, M = 0.1 * scale, 20.0 * scale

        def quad(v):
            own = v - self.z + self.u if self.on_objective else self.x - v + self.u
            anchored = own if self.on_objective else v - self.x - self.u
            return 0.5 * rho * sum(t * t for t in anchored)

        def observed():
            return [
                (f[i] if self.on_objective else M * (not feasible[i])) + quad(self.U[r])
                for i, r in enumerate(rows)
            ]

        if self.left == 0:
            solution = self.U[rows[int(np.argmin(observed()))]]
            if self.on_objective:
                self.x, self.on_objective = solution, False
                self.left = 10 if self.first else 2
            else:
                self.z, self.on_objective, self.first = solution, True, False
                self.u = self.u + self.x - self.z
                self.left = 2
        best = min(observed())
        values = []
        for j, v in enumerate(self.U):
            if self.on_objective:
                mean, std = -surrogate.mean[j] + quad(v), surrogate.std[j]
                t = (best - mean) / std
                values.append(std * (t * norm.cdf(t) + norm.pdf(t)))
            else:
                p = 1 - norm.cdf(-surrogate.margin_mean[j] / surrogate.margin_std[j])
                gap = best - quad(v)
                values.append((1 - p) * max(gap, 0) + p * max(gap - M, 0))
        if not self.on_objective and max(values) <= 0:
            values = [
                -(M * norm.cdf(surrogate.margin_mean[j] / surrogate.margin_std[j]) + quad(v))
                for j, v in enumerate(self.U)
            ]
        self.left -= 1
        return np.array(values)


@pytest.mark.parametrize("seed", range(4))
def test_thirty_steps_are_those_of_the_reference(seed):
    problem, space = small_space(seed)
    optimizer = parabolt.make_optimizer("admmbo", space, seed=0, n_initial=5, repeats="allow")
    rows = [0, 3, 5, 8, 11]
    for row in rows:
        optimizer.tell(space.candidates[row], problem.evaluate(space.candidates[row]))
    reference, phases = None, set()
    for _ in range(30):
        history, surrogate = optimizer.history, optimizer.surrogate()
        if reference is None:
            best = history.best_feasible_row()
            reference = Reference(surrogate.candidates, 0 if best is None else best)
        values = reference.choose(surrogate, history.rows, history.throughput, history.is_feasible)
        phases.add(reference.on_objective)
        row = space.row(optimizer.ask())
        assert values[row] >= values.max() - 1e-9 * abs(values.max())
        optimizer.tell(space.candidates[row], problem.evaluate(space.candidates[row]))
    assert phases == {True, False}


def test_the_alternation_by_hand():
    start = np.array([0.0, 0.0])
    state = AdmmState.at(start)
    for _ in range(10):
        state = state.queried()
    assert (state.n_left, state.subproblem) == (0, "objective")
    state = state.solved(np.array([1.0, 0.5]))
    assert (state.n_left, state.subproblem) == (10, "constraint")
    # In FEAS the anchor is x + u = (1, 0.5).
    assert state.quadratic(np.array([[0.0, 0.5]]), 0.1) == pytest.approx([0.05])
    state = state.solved(np.array([0.0, 0.5]))
    assert (state.n_left, state.subproblem, state.is_first_sweep) == (2, "objective", False)
    assert state.u == pytest.approx([1.0, 0.0])
    # In OPT it is z - u = (-1, 0.5).
    assert state.quadratic(np.array([[0.0, 0.5], [-1.0, 0.5]]), 2.0) == pytest.approx([1.0, 0.0])
    assert state.solved(start).n_left == 2


def test_a_subproblem_is_solved_by_the_best_observation():
    X = np.array([[0.0], [0.5], [1.0]])
    f, feasible = np.array([-0.2, np.nan, -0.5]), np.array([True, False, True])
    state = AdmmState.at(np.array([0.0]))
    assert best_in_data(state, X, f, feasible, 0.3) == 2
    state = state.solved(np.array([0.5]))
    # Unit range: the infeasible middle costs 20, the ends 0.05 * 0.25 each; the first wins.
    assert best_in_data(state, X, f, feasible, 1.0) == 0


def test_feas_improvement_by_hand():
    p, quadratic = np.array([0.0, 1.0, 0.25]), np.array([0.1, 0.1, 0.3])
    value = feasibility_improvement(p, quadratic, best=0.5, penalty=20.0)
    assert value == pytest.approx([0.4, 0.0, 0.75 * 0.2])
    value = feasibility_improvement(p, quadratic, best=20.5, penalty=20.0)
    assert value == pytest.approx([20.4, 0.4, 0.75 * 20.2 + 0.25 * 0.2])


def test_goes_on_without_anything_feasible_or_any_throughput():
    _, space = small_space()
    optimizer = parabolt.make_optimizer("admmbo", space, seed=0, n_initial=2, repeats="allow")
    for _ in range(25):
        configuration = optimizer.ask()
        optimizer.tell(configuration, Outcome.oom())
    assert optimizer.recommend() is None
