from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import parabolt
from parabolt.costmodel.calibration.calibration import Calibration
from parabolt.costmodel.calibration.evidence import Evidence, StackedTrials
from parabolt.costmodel.calibration.failure import fit_failures
from parabolt.costmodel.calibration.file import load_calibration, save_calibration
from parabolt.costmodel.calibration.likelihood import memory_residuals
from parabolt.costmodel.explanation import _bar
from parabolt.costmodel.predictor import CostModel
from parabolt.costmodel.step_time import TIME_TERMS
from parabolt.costmodel.terms.term import Term, log_sum
from parabolt.errors import ObservationError, TableError
from parabolt.outcome import SOURCES, Outcome, Outcomes, Source
from parabolt.problems.simulated import Effects, SimulatedProblem, hidden_machine


def evidence(table, rows):
    return Evidence(table.instance, table.space.encoded[rows], table.outcomes.take(rows))


@pytest.fixture
def table():
    return parabolt.load_table("pco32")


def test_no_trials_leave_the_prior(table):
    prior = Calibration.prior()
    fitted = prior.fit(evidence(table, np.arange(0)))
    assert fitted.n_trials == 0
    assert fitted.instances == ()
    assert fitted.time.mean == pytest.approx(prior.time.mean)
    assert fitted.time.covariance == pytest.approx(prior.time.covariance)
    assert fitted.memory.mean == pytest.approx(prior.memory.mean)
    assert fitted.failures.crash.mean == pytest.approx(prior.failures.crash.mean)
    assert fitted.failures.usable == pytest.approx(prior.failures.usable, rel=1e-3)


def test_trials_only_shrink_the_doubt(table):
    prior = Calibration.prior()
    few = prior.fit(evidence(table, np.arange(100, 103)))
    many = prior.fit(evidence(table, np.arange(len(table))))
    for part in ("time", "memory"):
        doubts = [np.diag(getattr(c, part).covariance) for c in (prior, few, many)]
        assert (doubts[1] <= doubts[0] * 1.001).all()
        assert doubts[2].sum() < doubts[1].sum() < doubts[0].sum()
    relaxed = many.transferred()
    assert (np.diag(relaxed.time.covariance) > np.diag(many.time.covariance)).all()


def test_hidden_coefficients_are_recovered():
    """On data that the model itself drew, without effects beyond it, the fit finds the machine."""
    quiet = Effects(structure=0.0, noise=0.0005, slow_share=0.0, fragmentation=0.0)
    problem = SimulatedProblem(parabolt.load_instance("pco32"), seed=3, effects=quiet)
    truth = hidden_machine(np.random.default_rng(3), quiet.coefficient_scale)
    rows = np.random.default_rng(0).choice(len(problem.space), 200, replace=False)
    fitted = Calibration.prior().fit(evidence(problem.table, rows))
    model, real = CostModel(problem.instance, fitted), CostModel(problem.instance, truth)
    found = model.predict(problem.space.encoded)
    true = real.predict(problem.space.encoded)
    assert np.abs(np.log(found.step_time_s / true.step_time_s)).max() < 0.01
    assert np.abs(np.log(found.peak_memory_gib / true.peak_memory_gib)).max() < 0.01
    doubt = np.sqrt(np.diag(fitted.time.covariance))
    assert (np.abs(fitted.time.mean - truth.time.mean) < 4 * doubt).mean() > 0.9


def test_intervals_cover_on_simulated_machines():
    covered = []
    for seed in range(12):
        problem = SimulatedProblem(parabolt.load_instance("pco32"), seed=seed)
        table = problem.table
        rows = np.random.default_rng(seed).choice(len(table), 30, replace=False)
        model = CostModel(problem.instance, Calibration.prior().fit(evidence(table, rows)))
        low, high = model.predict(table.space.encoded).throughput_interval(0.9)
        truth, ok = table.outcomes.throughput, table.is_feasible
        covered.append(((low <= truth) & (truth <= high))[ok].mean())
    assert 0.84 <= np.mean(covered) <= 0.97


def test_an_oom_is_evidence_of_memory(table):
    """OOMs where the model sees room raise the predicted peak of the like; crashes don't."""
    inside = np.flatnonzero(~table.is_feasible)
    prior = Calibration.prior()
    before = CostModel(table.instance, prior).predict(table.space.encoded[inside])
    near = inside[(before.peak_memory_gib > 70) & (before.peak_memory_gib < 100)]
    assert len(near) >= 4
    configurations = table.space.encoded[near]
    oom = prior.fit(Evidence(table.instance, configurations, table.outcomes.take(near)))
    crashed = Outcomes.of([Outcome(parabolt.Status.CRASHED)] * len(near))
    none = prior.fit(Evidence(table.instance, configurations, crashed))
    risks = [CostModel(table.instance, c).predict(configurations).p_oom for c in (prior, oom, none)]
    assert (risks[1] > risks[0]).all()
    assert risks[2] == pytest.approx(risks[0], abs=0.02)


def test_imputed_and_interpolated_figures_are_no_trials(table):
    rows = np.flatnonzero(table.is_feasible)[:40]
    outcomes = table.outcomes.take(rows)
    guessed = replace(
        outcomes,
        throughput=outcomes.throughput * 3,
        throughput_source=np.full(40, SOURCES.index(Source.IMPUTED), dtype=np.uint8),
    )
    fitted = Calibration.prior().fit(Evidence(table.instance, table.space.encoded[rows], guessed))
    assert fitted.time.mean == pytest.approx(Calibration.prior().time.mean)


def test_one_wild_run_does_not_spoil_the_fit(table):
    rows = np.flatnonzero(table.is_feasible)[:60]
    outcomes = table.outcomes.take(rows)
    throughput = outcomes.throughput.copy()
    throughput[7] /= 5
    wild = replace(outcomes, throughput=throughput)
    encoded = table.space.encoded[rows]
    good = Calibration.prior().fit(Evidence(table.instance, encoded, outcomes))
    spoilt = Calibration.prior().fit(Evidence(table.instance, encoded, wild))
    change = np.log(
        CostModel(table.instance, good).point(encoded)[0]
        / CostModel(table.instance, spoilt).point(encoded)[0]
    )
    assert np.abs(change).mean() < 0.01


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_derivatives_agree_with_differences(seed):
    """The Jacobian of time, and gradient of the censored likelihood of memory."""
    table = parabolt.load_table("pco64")
    rng = np.random.default_rng(seed)
    trials = StackedTrials.of([evidence(table, rng.choice(len(table), 30, replace=False))])
    z = Calibration.prior().time.mean + 0.3 * rng.standard_normal(trials.time.shape[1])
    _, jacobian = log_sum(trials.time, z)
    step, k = 1e-6, int(rng.integers(len(z)))
    ahead, behind = z.copy(), z.copy()
    ahead[k] += step
    behind[k] -= step
    slope = (log_sum(trials.time, ahead)[0] - log_sum(trials.time, behind)[0]) / (2 * step)
    assert jacobian[:, k] == pytest.approx(slope, abs=1e-6)

    prior = Calibration.prior()
    failures, blame = fit_failures(prior.failures, prior.memory, trials)
    residuals = memory_residuals(trials, failures.usable, blame)
    m = prior.memory.mean + 0.05 * rng.standard_normal(len(prior.memory.mean))
    k = int(rng.integers(len(m)))
    ahead, behind = m.copy(), m.copy()
    ahead[k] += step
    behind[k] -= step
    slope = (residuals(ahead, 0.1).loss - residuals(behind, 0.1).loss) / (2 * step)
    assert residuals(m, 0.1).gradient[k] == pytest.approx(-slope, rel=1e-3, abs=1e-4)


def test_a_calibration_survives_its_file(table, tmp_path):
    fitted = Calibration.prior().fit(evidence(table, np.arange(0, len(table), 7)))
    save_calibration(fitted, tmp_path / "c.toml")
    again = load_calibration(tmp_path / "c.toml")
    assert again.instances == ("pco32",)
    assert again.n_trials == fitted.n_trials
    one, other = fitted.failures, again.failures
    assert (one.usable, one.usable_log_std) == (other.usable, other.usable_log_std)
    for one, other in (
        (fitted.time, again.time),
        (fitted.memory, again.memory),
        (fitted.failures.crash, again.failures.crash),
    ):
        assert (one.mean == other.mean).all()
        assert (one.covariance == other.covariance).all()
        assert one.sigma == other.sigma


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("format = 1", "format = 9", "expected format 1, got 9"),
        ("usable = ", "useable = ", "expected the key 'usable'"),
        ('"matmul"', '"matmult"', r"expected coefficients among .*, got \['matmult'\]"),
        ('"attention"', '"matmul"', r"got \['matmul', 'matmul'\]"),
        ("mean = [", "mean = [0.5, ", "expected 25 means and 25 x 25 covariances, got 26 means"),
        ("  [0.0225", "  [-0.0225", "expected finite means and a positive definite covariance"),
        ("sigma = ", "sigma = -", "expected a positive number"),
        ("[time]", "[time", "expected TOML"),
    ],
)
def test_a_bad_file_gives_one_clear_error(tmp_path, old, new, message):
    path = tmp_path / "c.toml"
    save_calibration(Calibration.prior(), path)
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(TableError, match=message):
        load_calibration(path)


def test_as_many_outcomes_as_configurations(table):
    with pytest.raises(ObservationError, match="configurations, 3, got 2"):
        Evidence(table.instance, table.space.encoded[:3], table.outcomes.take(np.arange(2)))


@pytest.mark.needs("matplotlib")
def test_explanation(table, tmp_path):
    model = CostModel(table.instance)
    best = parabolt.load_problem("pco32").optimum.configuration
    found = model.explain(best)
    assert set(found.as_dict()["time_s"]) == set(found.time_s)
    text = str(found)
    assert "step time" in text
    assert "zero2_bandwidth" in text
    assert "assumed: network not stated" in text
    found.draw(tmp_path / "bars.png")
    assert (tmp_path / "bars.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.needs("matplotlib")
def test_terms_below_half_a_percent_are_not_drawn():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    _bar(axes, {"small": 0.4, "large": 70.0, "medium": 29.6}, "s", "step time")
    assert axes.get_legend_handles_labels()[1] == ["large 70 s", "medium 29.6 s"]
    assert [bar.get_y() for bar in axes.patches] == [0.0, 70.0]
    assert [bar.get_height() for bar in axes.patches] == pytest.approx([70.0, 29.6])


def test_a_file_of_version_0_1_is_read_when_terms_have_come_since(monkeypatch):
    """A coefficient that the file doesn't have is what specifications say."""
    path = Path(__file__).parents[1] / "data" / "calibration-0.1.toml"
    table = parabolt.load_table("pco32")

    def predictions():
        model = CostModel(table.instance, load_calibration(path))
        found = model.predict(table.space.encoded[:400:80])
        return found.step_time_s, found.peak_memory_gib, found.p_oom

    # What version 0.1 predicted with this file.
    as_then = (
        [4.618269525772499, 4.032745243665467, 4.481842658570345, 3.2882112111889734,
         3.579169714235004],
        [41.467758080548734, 29.059221463301057, 30.242161804362986, 59.52625050869648,
         68.28085841752608],
        [0.007951098777227064, 0.02720213599398697, 0.08449047507822578, 0.00897390859116561,
         0.004830161799123051],
    )  # fmt: skip
    for now, then in zip(predictions(), as_then, strict=True):
        assert now == pytest.approx(then, rel=1e-9)
    new = Term("tomorrow", lambda x: np.full(len(x), 0.25), 2.0, 0.5, "a term of tomorrow")
    for module in ("step_time", "calibration.calibration", "predictor", "explanation"):
        monkeypatch.setattr(f"parabolt.costmodel.{module}.TIME_TERMS", (*TIME_TERMS, new))
    calibration = load_calibration(path)
    assert calibration.time.mean[-1] == pytest.approx(np.log(2.0))
    assert calibration.time.covariance[-1, -1] == pytest.approx(0.25)
    assert (calibration.time.covariance[-1, :-1] == 0.0).all()
    assert predictions()[0] == pytest.approx(np.array(as_then[0]) + 0.5, rel=1e-9)
