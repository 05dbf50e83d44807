"""Two objectives against brute force and against Optuna's hypervolume."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna._hypervolume import compute_hypervolume

from parabolt.analysis.landscape import Landscape
from parabolt.analysis.tradeoff import hypervolume, hypervolume_curve, pareto_rows, tradeoff
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.run import Run, RunKey, execute
from parabolt.outcome import Outcome, Outcomes, Status

CAPACITY = 10.0

finished = st.tuples(st.integers(1, 6), st.integers(1, 9)).map(
    lambda pair: Outcome(Status.OK, pair[0] / 2, float(pair[1]), pair[1] / CAPACITY - 1)
)
died = st.sampled_from([Outcome.oom(), Outcome(Status.CRASHED), Outcome.ok(9.0)])


def is_beaten(outcomes, row):
    """Whether another finished run with a memory figure is no worse in both and better in one."""
    own = outcomes[row]
    for other in outcomes:
        if other.is_feasible and np.isfinite(other.peak_memory_gib):
            pairs = ((other.throughput, own.throughput),
                     (-other.peak_memory_gib, -own.peak_memory_gib))  # fmt: skip
            if all(a >= b for a, b in pairs) and any(a > b for a, b in pairs):
                return True
    return False


@settings(deadline=None)
@given(st.lists(st.one_of(finished, died), min_size=1, max_size=20))
def test_the_front_and_its_area(made):
    outcomes = Outcomes.of(made)
    front = pareto_rows(outcomes).tolist()
    usable = [i for i, o in enumerate(made) if o.is_feasible and np.isfinite(o.peak_memory_gib)]
    unbeaten = [i for i in usable if not is_beaten(made, i)]
    assert set(front) <= set(unbeaten)
    points = {(made[i].throughput, made[i].peak_memory_gib) for i in unbeaten}
    assert {(made[i].throughput, made[i].peak_memory_gib) for i in front} == points
    assert len(front) == len(points)
    losses = np.array([[-made[i].throughput, made[i].peak_memory_gib] for i in usable])
    expected = compute_hypervolume(losses, np.array([0.0, CAPACITY])) if usable else 0.0
    assert hypervolume(outcomes, CAPACITY) == pytest.approx(expected)


def test_by_hand():
    """Points (1 it/s, 2 GiB) and (3 it/s, 6 GiB) before (0 it/s, 10 GiB): 1 x 8 + 2 x 4."""
    made = [Outcome(Status.OK, t, m, m / 10 - 1) for t, m in ((3.0, 6.0), (1.0, 2.0), (2.0, 7.0))]
    assert pareto_rows(Outcomes.of(made)).tolist() == [1, 0]
    assert hypervolume(Outcomes.of(made), 10.0) == 16.0
    assert hypervolume(Outcomes.of(made), 5.0) == 3.0  # what needs more memory dominates nothing


def test_of_a_run_it_never_falls_and_ends_at_the_area_of_all(pco32):
    run = execute(pco32, RunKey.of(pco32, "random", 3, Protocol(n_evaluations=60)))
    curve = hypervolume_curve(run, 96.0)
    assert (np.diff(curve) >= 0).all()
    for t in (0, 9, 30, len(run) - 1):
        expected = hypervolume(run.outcomes.take(np.arange(t + 1)), 96.0)
        assert curve[t] == pytest.approx(expected)


def test_of_a_problem(pco64):
    landscape = Landscape.of(pco64)
    run = execute(pco64, RunKey.of(pco64, "random", 0, Protocol(n_evaluations=20)))
    failed = Run.without_finds(run.key, run.optimum)
    found = tradeoff(landscape, {"random": [run, failed]})
    assert found.capacity_gib == pco64.instance.cluster.memory_gib
    feasible = pco64.table.outcomes.is_feasible
    losses = np.stack([-pco64.table.outcomes.throughput, pco64.table.outcomes.peak_memory_gib], 1)
    reference = np.array([0.0, found.capacity_gib])
    assert found.hypervolume == pytest.approx(compute_hypervolume(losses[feasible], reference))
    assert landscape.best == found.front[-1]  # the fastest is on the front, with the most memory
    own = 100 * hypervolume_curve(run, found.capacity_gib) / found.hypervolume
    assert found.curves["random"].mean == pytest.approx(own / 2)  # the failed run found nothing


def test_without_memory_figures_there_is_none(pco32):
    landscape = Landscape.of(pco32)
    unknown = Outcomes.of([Outcome.ok(0.25)] * len(landscape))
    assert tradeoff(Landscape(landscape.space, landscape.positions, unknown), {}) is None
