"""What the issue asks for, on the published tables. Bounds are targets, not what was reached."""

import numpy as np
import pytest
from scipy.stats import rankdata, spearmanr

import parabolt
from parabolt.costmodel.calibration.calibration import Calibration
from parabolt.costmodel.calibration.evidence import Evidence
from parabolt.costmodel.predictor import CostModel


def trials(name, rows=None):
    table = parabolt.load_table(name)
    rows = np.arange(len(table)) if rows is None else rows
    return Evidence(table.instance, table.space.encoded[rows], table.outcomes.take(rows))


def predict(name, calibration):
    table = parabolt.load_table(name)
    return table, CostModel(table.instance, calibration).predict(table.space.encoded)


def spearman(table, found):
    ok = table.is_feasible
    return spearmanr(found.throughput[ok], table.outcomes.throughput[ok])[0]


def mape(found, truth):
    return np.abs(found / truth - 1).mean()


def auc(risk, failed):
    n = failed.sum()
    return (rankdata(risk)[failed].sum() - n * (n + 1) / 2) / (n * (~failed).sum())


@pytest.mark.parametrize("name", ["pco32", "pco64"])
def test_specifications_alone_rank_the_table(name):
    table, found = predict(name, Calibration.prior())
    assert spearman(table, found) >= 0.75


@pytest.mark.parametrize("name", ["pco32", "pco64"])
def test_all_rows(name):
    table, found = predict(name, Calibration.prior().fit(trials(name)))
    ok, truth = table.is_feasible, table.outcomes
    assert mape(found.throughput[ok], truth.throughput[ok]) <= 0.03
    assert spearman(table, found) >= 0.97
    assert mape(found.peak_memory_gib[ok], truth.peak_memory_gib[ok]) <= 0.03
    assert auc(found.p_oom, ~ok) >= 0.97
    low, high = found.throughput_interval(0.9)
    covered = (low <= truth.throughput) & (truth.throughput <= high)
    assert 0.85 <= covered[ok].mean() <= 0.97


@pytest.mark.parametrize(("name", "target"), [("pco32", 0.92), ("pco64", 0.88)])
def test_twenty_random_trials(name, target):
    table = parabolt.load_table(name)
    rng = np.random.default_rng(0)
    scores, covered = [], []
    for _ in range(100):
        rows = rng.choice(len(table), 20, replace=False)
        _, found = predict(name, Calibration.prior().fit(trials(name, rows)))
        scores.append(spearman(table, found))
        low, high = found.throughput_interval(0.9)
        inside = (low <= table.outcomes.throughput) & (table.outcomes.throughput <= high)
        covered.append(inside[table.is_feasible].mean())
    assert np.median(scores) >= target
    assert 0.83 <= np.mean(covered) <= 0.97


@pytest.mark.parametrize(("source", "target"), [("pco32", "pco64"), ("pco64", "pco32")])
def test_across_instances(source, target):
    calibration = Calibration.prior().fit(trials(source)).transferred()
    table, found = predict(target, calibration)
    assert spearman(table, found) >= 0.85
    ok = np.flatnonzero(table.is_feasible)
    best = ok[np.argmax(table.outcomes.throughput[ok])]
    assert (found.throughput[ok] > found.throughput[best]).sum() < 5


def test_a_posterior_as_prior_is_the_pooled_fit():
    """Fitting in two steps differs from fitting at once by less than half of the scatter."""
    table = parabolt.load_table("pco64")
    rows = np.random.default_rng(1).choice(len(table), 200, replace=False)
    whole = Calibration.prior().fit(trials("pco64", rows))
    half = Calibration.prior().fit(trials("pco64", rows[:100])).fit(trials("pco64", rows[100:]))
    assert half.n_trials == whole.n_trials == 200
    _, one = predict("pco64", whole)
    _, two = predict("pco64", half)
    ok = table.is_feasible
    difference = np.abs(np.log(one.throughput / two.throughput))[ok].mean()
    assert difference < 0.5 * whole.time.scatter
