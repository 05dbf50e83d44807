"""Packed stores: what comes out is what went in, and published runs join only their problems."""

import dataclasses

import numpy as np
import pyarrow.parquet as pq
import pytest

import parabolt
from parabolt.errors import StudyError, TableError
from parabolt.experiments.packed import pack_store, published_files, read_packed
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.results import have_same_evaluations, read_results
from parabolt.experiments.run import execute
from parabolt.experiments.run_key import RunKey
from parabolt.experiments.runner import run_study
from parabolt.experiments.store import FailedRun, RunStore
from parabolt.experiments.study import OptimizerChoice, Study

#: Problems with different knobs: one searches sizes of micro-batches, the other does not.
STUDY = Study(
    problems=("pco4-cpu", "uscale-1b-8"),
    optimizers=(OptimizerChoice("random", "random"), OptimizerChoice("random", "again")),
    seeds=(0, 1),
    protocol=(("n_evaluations", 3),),
)


@pytest.fixture
def folder(tmp_path, here):
    problems = [parabolt.load_problem(name) for name in STUDY.problems]
    run_study(STUDY, problems, tmp_path / "study", executor=here)
    return tmp_path / "study"


def test_what_is_packed_comes_out_again(folder, tmp_path):
    store = RunStore(folder)
    lost = store.load_all()[3]
    store.remove(lost.key)
    failure = FailedRun(lost.key, "RuntimeError: singular", "Traceback", 3, lost.optimum, 4)
    store.save_failure(failure)
    assert pack_store(folder, tmp_path / "p.parquet") == 7
    runs, failed = read_packed(tmp_path / "p.parquet")
    assert failed == [failure]
    stored = {run.key: run for run in store.load_all()}
    assert [run.key for run in runs] == [k for k in _wanted() if k != lost.key]
    for run in runs:
        before = stored[run.key]
        assert have_same_evaluations(run, before)
        assert list(run.outcomes) == list(before.outcomes)
        assert (run.optimum, run.n_initial, run.n_gpus) == (
            before.optimum, before.n_initial, before.n_gpus,
        )  # fmt: skip
        assert run.environment == before.environment
        for name in ("recommended", "step_time_s", "n_failed_fits", "was_shortened", "end_s"):
            np.testing.assert_array_equal(getattr(run, name), getattr(before, name))
    pack_store(folder, tmp_path / "q.parquet")
    assert (tmp_path / "p.parquet").read_bytes() == (tmp_path / "q.parquet").read_bytes()


def _wanted():
    problems = [parabolt.load_problem(name) for name in STUDY.problems]
    return [key for _, key in STUDY.keys(problems)]


def test_a_packed_file_is_a_table_for_any_reader(folder, tmp_path):
    pack_store(folder, tmp_path / "p.parquet")
    rows = pq.read_table(tmp_path / "p.parquet").to_pylist()
    own = [r for r in rows if (r["problem"], r["optimizer"]) == ("pco4-cpu", "random")]
    assert {row["seed"] for row in own} == {0, 1}
    best = max(row["throughput"] for row in own if row["status"] == "ok")
    problem = parabolt.load_problem("pco4-cpu")
    protocol = Protocol(n_evaluations=3)
    runs = [execute(problem, RunKey.of(problem, "random", seed, protocol)) for seed in (0, 1)]
    assert best == max(run.outcomes.throughput[run.outcomes.is_feasible].max() for run in runs)


def test_what_is_not_whole_is_not_packed(folder, tmp_path):
    store = RunStore(folder)
    store.remove(store.load_all()[0].key)
    with pytest.raises(StudyError, match=r"1 of 8 runs are missing; try: parabolt study resume"):
        pack_store(folder, tmp_path / "p.parquet")
    with pytest.raises(StudyError, match="expected a study's directory"):
        pack_store(tmp_path, tmp_path / "p.parquet")
    for content in (b"", b"PAR1", next((folder / "runs").iterdir()).read_bytes()):
        (tmp_path / "p.parquet").write_bytes(content)
        with pytest.raises(TableError, match="is no packed store of parabolt"):
            read_packed(tmp_path / "p.parquet")


def test_baselines_join_the_problems_that_there_are(folder, tmp_path):
    pack_store(folder, tmp_path / "theirs.parquet")
    store = RunStore(tmp_path / "mine")
    runs = [run for run in RunStore(folder).load_all() if run.key.problem == "pco4-cpu"]
    mine = next(r for r in runs if (r.key.optimizer, r.key.seed) == ("random", 1))
    store.save(mine)
    other = dataclasses.replace(mine.key, protocol=Protocol(n_evaluations=3, noise_std=0.5))
    store.save(dataclasses.replace(mine, key=other))
    results = read_results([tmp_path / "mine"], baselines=[tmp_path / "theirs.parquet"])
    found = {
        board.label: {group.label: [run.key.seed for run in group.runs] for group in board.groups}
        for board in results.boards
    }
    assert found == {
        "pco4-cpu [noise_std 0.001]": {"random": [0, 1], "again": [0, 1]},
        "pco4-cpu [noise_std 0.5]": {"random": [1]},
    }
    assert results.notices == ("4 runs of the published theirs were added",)
    assert {b.problem for b in read_results([tmp_path / "theirs.parquet"]).boards} == {
        "pco4-cpu", "uscale-1b-8",
    }  # fmt: skip


def test_a_place_without_runs_is_no_store(folder, tmp_path):
    with pytest.raises(TableError, match=r"expected runs in .*nowhere, got nothing there"):
        read_results([folder, tmp_path / "nowhere"])


def test_the_published_runs_are_of_the_embedded_data_and_repeat():
    assert [path.stem for path in published_files()] == ["grid"]
    assert sum(path.stat().st_size for path in published_files()) < 3_000_000
    (path,) = published_files()
    runs, failed = read_packed(path)
    assert failed == []
    for name in ("pco32", "pco64"):
        problem = parabolt.load_problem(name)
        own = [run for run in runs if run.key.problem == name]
        assert {run.key.content_hash for run in own} == {problem.content_hash}
        (stored,) = (r for r in own if (r.key.optimizer, r.key.seed) == ("logeic", 3))
        short = dataclasses.replace(stored.key, protocol=Protocol(n_evaluations=5))
        again = execute(problem, short)
        assert again.configurations == stored.cut(5).configurations
        np.testing.assert_array_equal(again.observed, stored.observed[: len(again)])
