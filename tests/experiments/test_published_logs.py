import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest

import parabolt
from parabolt.errors import TableError
from parabolt.experiments.published_logs import read_published
from parabolt.experiments.run import RunKey, execute

PATH = Path(__file__).parents[1] / "data" / "published_random.csv"


@pytest.fixture
def document():
    """The published random runs of pco32 in the layout of the published result files."""
    with PATH.open() as file:
        rows = [row for row in csv.DictReader(file) if row["problem"] == "pco32"]
    trials = []
    for seed in range(10):
        own = [row for row in rows if int(row["seed"]) == seed]
        candidates = [[float(level) for level in row["levels"].split()] for row in own]
        for levels in candidates:
            levels[6] = float({0: 0, 2: 1, 3: 2}[int(levels[6])])
        trials.append(
            {
                "trial": seed, "seed": seed, "time_seconds": 0.05, "rec_true_all": [],
                "simple_regret_all": [math.inf], "candidates": candidates,
                "seen_y": [float(row["observed_throughput"]) for row in own],
                "seen_c": [float(row["slack"]) for row in own],
            }
        )  # fmt: skip
    return {
        "problem": "pco32", "acq_fn": "random", "iterations": 50, "prior_mean": False,
        "initial_random_samples": 10, "noise_std": 0.001, "trials": trials,
    }  # fmt: skip


def write(tmp_path, document):
    path = tmp_path / "pco32_random_results.json"
    path.write_text(json.dumps(document))
    return path


def test_imported_runs_are_those_that_we_run_ourselves(tmp_path, document):
    problem = parabolt.load_problem("pco32")
    assert "Infinity" in write(tmp_path, document).read_text()
    runs = read_published(write(tmp_path, document), problem)
    assert [run.key.optimizer for run in runs] == ["random (published)"] * 10
    for run in runs:
        own = execute(problem, RunKey.of(problem, "random", run.key.seed, run.key.protocol))
        assert run.configurations == own.configurations
        assert np.abs(run.observed - own.observed).max() < 1e-6
        assert np.array_equal(run.outcomes.throughput, own.outcomes.throughput, equal_nan=True)
        assert run.n_initial == own.n_initial == 10
        assert run.step_time_s[-1] == pytest.approx(0.001)


def test_recommendations_come_along(tmp_path, document):
    document["trials"][0]["rec_true_all"] = [0.4] * 49 + [-math.inf]
    run = read_published(write(tmp_path, document), parabolt.load_problem("pco32"))[0]
    assert np.isnan(run.recommended[:10]).all()
    assert run.recommended[10:].tolist() == [0.4] * 49 + [0.0]


def test_files_that_contradict_the_table_are_refused(tmp_path, document):
    problem = parabolt.load_problem("pco32")
    with pytest.raises(TableError, match="expected runs on pco64, got 'pco32'"):
        read_published(write(tmp_path, document), parabolt.load_problem("pco64"))
    document["trials"][2]["seen_c"][7] += 0.01
    with pytest.raises(TableError, match="seed 2, evaluation 7: expected the table's slack"):
        read_published(write(tmp_path, document), problem)
    document["trials"][2]["candidates"][7][0] = 9.0
    with pytest.raises(TableError, match="expected the 32 GPUs"):
        read_published(write(tmp_path, document), problem)
    del document["trials"]
    with pytest.raises(TableError, match="is no published result file"):
        read_published(write(tmp_path, document), problem)
