"""The published random runs come out as they were published, evaluation by evaluation."""

import csv
from pathlib import Path

import numpy as np
import pytest

import parabolt
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.run import RunKey, execute
from parabolt.outcome import SOURCES, Source

#: `published/` of the BoLT logs: problem, seed, evaluation, raw levels, observed throughput with
#: the published noise (7 decimals), slack (8 decimals). See NOTICE.
PATH = Path(__file__).parents[1] / "data" / "published_random.csv"


@pytest.fixture(scope="module")
def published():
    with PATH.open() as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def runs():
    return {
        (name, seed): execute(problem, RunKey.of(problem, "random", seed, Protocol.published(name)))
        for name in ("pco32", "pco64")
        for problem in [parabolt.load_problem(name)]
        for seed in range(10)
    }


def test_lengths(published, runs):
    assert len(published) == 10 * 60 + 10 * 110
    for (name, seed), run in runs.items():
        expected = [r for r in published if (r["problem"], int(r["seed"])) == (name, seed)]
        assert len(run) == len(expected)
        assert [int(r["evaluation"]) for r in expected] == list(range(len(run)))


def test_every_configuration_and_slack_is_identical(published, runs):
    for row in published:
        run = runs[row["problem"], int(row["seed"])]
        t = int(row["evaluation"])
        assert raw_levels(run.configurations[t]) == row["levels"]
        assert -run.outcomes.memory_margin[t] == pytest.approx(float(row["slack"]), abs=1e-12)


def test_every_observed_throughput_is_identical(published, runs):
    """To 1e-6; but for four imputed values of pco64 that rest on interpolated rows (0.005)."""
    loose = []
    for row in published:
        run = runs[row["problem"], int(row["seed"])]
        t = int(row["evaluation"])
        error = abs(run.observed[t] - float(row["observed_throughput"]))
        if error > 1e-6:
            loose.append((row["problem"], run.outcomes.is_feasible[t], error))
    assert [problem for problem, _, _ in loose] == ["pco64"] * 4
    assert not any(feasible for _, feasible, _ in loose)
    assert max(error for *_, error in loose) < 0.005


def test_imputed_values_are_observed_but_never_stored_as_measured(runs):
    for run in runs.values():
        failed = ~run.outcomes.is_feasible
        assert np.isnan(run.outcomes.throughput[failed]).all()
        assert np.isfinite(run.observed[failed]).all()
        none = SOURCES.index(Source.NONE)
        assert set(run.outcomes.throughput_source[failed].tolist()) <= {none}


def raw_levels(c):
    sizes = (c.dp, c.tp, c.pp, c.cp, c.sp, c.bucket)
    levels = [size.bit_length() - 1 for size in sizes]
    return " ".join(map(str, [*levels, c.zero, c.chunks.bit_length() - 1]))
