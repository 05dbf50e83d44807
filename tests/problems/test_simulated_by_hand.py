"""The effects of a simulated machine, one at a time."""

import numpy as np
import pytest

import parabolt
from parabolt.costmodel.calibration.calibration import Calibration
from parabolt.problems.simulated import Effects, SimulatedProblem, hidden_machine

NONE = {
    "coefficient_scale": 0.0,
    "structure": 0.0,
    "noise": 0.0,
    "slow_share": 0.0,
    "slow_factor": 1.0,
    "fragmentation": 0.0,
}


def simulated(seed=0, name="pco64", **effects):
    instance = parabolt.load_instance(name)
    problem = SimulatedProblem(instance, seed=seed, effects=Effects(**{**NONE, **effects}))
    expected = parabolt.CostModel(instance).predict(problem.space.encoded)
    ok = problem.table.is_feasible
    slowdown = expected.throughput[ok] / problem.table.outcomes.throughput[ok]
    return problem, expected, slowdown


def test_slow_runs():
    """A share of the runs is slower by a factor that is uniform between 1 and the largest."""
    _, _, slowdown = simulated(slow_share=1.0, slow_factor=1.5)
    assert 1.0 <= slowdown.min() < 1.02
    assert 1.48 < slowdown.max() < 1.5
    assert slowdown.mean() == pytest.approx(1.25, abs=0.04)
    _, _, slowdown = simulated(slow_share=0.25, slow_factor=1.5)
    assert (slowdown > 1.000001).mean() == pytest.approx(0.25, abs=0.05)


def test_noise_of_each_run_and_errors_of_each_family():
    """Runs differ by their noise; runs that differ in the bucket alone share a model error."""
    _, _, noisy = simulated(noise=0.05)
    assert np.log(noisy).std() == pytest.approx(0.05, rel=0.1)
    problem, _, slowdown = simulated(structure=0.2)
    names = [knob.name for knob in problem.knobs]
    ok = problem.table.is_feasible
    rest = np.delete(problem.space.encoded[ok], names.index("bucket"), axis=1)
    family = np.unique(rest, axis=0, return_inverse=True)[1].ravel()
    first = [np.log(slowdown[family == k]) for k in range(family.max() + 1)]
    assert max(np.ptp(f) for f in first) < 1e-9
    assert np.std([f[0] for f in first]) == pytest.approx(0.2, rel=0.15)


def test_columns_of_the_table():
    problem, expected, _ = simulated(noise=0.1)
    ok = problem.table.is_feasible
    data = {name: np.array(problem.table.data.column(name)) for name in (
        "throughput_mean", "throughput_std", "overall_time", "peak_mem", "peak_mem_normalised",
    )}  # fmt: skip
    # The start takes 120 s; 20 steps are timed.
    steps = 120.0 + 20.0 / data["throughput_mean"][ok]
    assert data["overall_time"][ok] == pytest.approx(steps)
    assert np.isnan(data["overall_time"][~ok]).all()
    capacity = problem.instance.cluster.memory_gib
    assert data["peak_mem"][ok] == pytest.approx(expected.peak_memory_gib[ok])
    assert data["peak_mem_normalised"][ok] == pytest.approx(data["peak_mem"][ok] / capacity - 1)
    # A step scatters by sqrt(20) times what the mean of 20 does; the factor has mean 1 and
    # standard deviation 1/2.
    spread = data["throughput_std"][ok] / data["throughput_mean"][ok] / (0.1 * np.sqrt(20))
    assert spread.mean() == pytest.approx(1.0, abs=0.08)
    assert spread.std() == pytest.approx(0.5, abs=0.08)


def test_what_runs_out_of_memory():
    """Without fragmentation what exceeds 94 % of the capacity dies; with it some more."""
    problem, expected, _ = simulated()
    usable = 0.94 * problem.instance.cluster.memory_gib
    ok, fits = problem.table.is_feasible, expected.peak_memory_gib <= usable
    assert not (ok & ~fits).any()
    # About one in a hundred of the others dies for no reason of memory.
    assert 0.0 < (fits & ~ok).sum() / fits.sum() < 0.03
    lossy, _, _ = simulated(fragmentation=0.3)
    lost = fits & ~lossy.table.is_feasible
    # Exponential losses of 30 %: exp(-room / 0.3) of those with that room die.
    room = usable / expected.peak_memory_gib[fits] - 1.0
    assert lost.sum() == pytest.approx(np.exp(-room / 0.3).sum(), rel=0.2)


def test_a_hidden_machine_is_drawn_from_the_prior():
    prior = Calibration.prior()
    draws = [hidden_machine(np.random.default_rng(seed)) for seed in range(400)]
    for part in ("time", "memory"):
        belief = getattr(prior, part)
        z = np.array([getattr(d, part).mean - belief.mean for d in draws])
        z /= np.sqrt(np.diag(belief.covariance))
        assert np.abs(z).max() == pytest.approx(2.0)
        # A normal that is cut at two standard deviations (what lies beyond, put there): 0.959.
        assert z.std() == pytest.approx(0.959, abs=0.03)
        assert z.mean() == pytest.approx(0.0, abs=0.03)
        assert (getattr(draws[0], part).covariance == belief.covariance).all()
    crash = np.array([d.failures.crash.mean - prior.failures.crash.mean for d in draws])
    assert crash.std() == pytest.approx(0.5 * 0.959, abs=0.03)
    half = hidden_machine(np.random.default_rng(5), 0.5)
    offset = half.time.mean - prior.time.mean
    assert 2 * offset == pytest.approx(draws[5].time.mean - prior.time.mean)
    assert (hidden_machine(np.random.default_rng(5), 0.0).time.mean == prior.time.mean).all()
