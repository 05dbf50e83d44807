import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import parabolt
from parabolt.errors import OptionError, StoreError, TableError
from parabolt.experiments.manifest import load_manifest
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.run import RunKey, execute
from parabolt.experiments.store import COLUMNS, RunStore, run_from_arrow, run_to_arrow

SHORT = Protocol(n_evaluations=5)


def short_run(optimizer="random", seed=0, protocol=SHORT):
    problem = parabolt.load_problem("pco32")
    return execute(problem, RunKey.of(problem, optimizer, seed, protocol))


def assert_same(one, other, *, but=()):
    assert one.key == other.key
    assert one.configurations == other.configurations
    for name in ("observed", "recommended", "step_time_s"):
        if name not in but:
            assert np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True), name
    assert one.outcomes == other.outcomes


def test_a_stored_run_comes_back_whole(tmp_path):
    run, store = short_run(), RunStore(tmp_path)
    path = store.save(run)
    assert_same(store.load(path), run)
    assert store.load(path).n_initial == run.n_initial
    assert store.load(path).optimum == run.optimum
    assert store.find(run.key) == path
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    assert path.name.startswith(f"pco32-random-000-{run.key.digest[:16]}-")


def test_a_stored_run_keeps_how_long_its_measurements_took(tmp_path):
    run, store = short_run(), RunStore(tmp_path)
    timed = replace(run, outcomes=replace(run.outcomes, wall_time_s=np.arange(15.0)))
    assert store.load(store.save(timed)).outcomes.wall_time_s.tolist() == list(range(15))


#: What version 0.1.0 wrote for `random` and for an own optimizer that fails on seed 1.
OLD = Path(__file__).parents[1] / "data" / "store_0_1"


def test_a_store_of_version_0_1_is_read():
    store = RunStore(OLD)
    old = {(run.key.optimizer, run.key.seed): run for run in store.load_all()}
    assert set(old) == {("random", 0), ("random", 1), ("flaky", 0)}
    run = old["random", 0]
    # Version 0.1 rounded imputed figures as the processor does.
    but = ("step_time_s", "observed")
    assert_same(replace(run, key=short_run().key), short_run(), but=but)
    np.testing.assert_allclose(run.observed, short_run().observed, rtol=1e-14)
    assert (run.key.parabolt, run.key.code, run.key.protocol) == ("0.1.0", "", SHORT)
    assert np.isnan(run.outcomes.wall_time_s).all()
    assert np.isnan(run.end_s).all()
    assert len(store.finished()) == 3
    (failed,) = store.load_failures()
    assert failed.key.seed == 1
    assert failed.reason == "RuntimeError: unlucky"
    assert failed.details.startswith("Traceback")
    manifest = load_manifest(OLD)
    assert {key.digest for key in manifest.keys} >= {run.key.digest for run in old.values()}
    assert [(c.name, c.label) for c in manifest.study.optimizers] == [
        ("random", "random"), ("flaky:Flaky", "flaky"),
    ]  # fmt: skip


@pytest.mark.parametrize(("problem", "gib"), [("pco4-cpu", 0.1e9 / 2**30), ("pco32", 0.1)])
def test_memory_of_version_0_1_is_in_the_unit_of_the_table(problem, gib):
    """The table of pco4-cpu states 1e9 bytes, those of the cards a GiB by the name of GB."""
    run = short_run()
    data = run_to_arrow(replace(run, key=replace(run.key, problem=problem)))
    at = data.column_names.index("peak_memory_gib")
    data = data.set_column(at, "peak_memory_gb", [[0.1] * len(data)])
    assert run_from_arrow(data).outcomes.peak_memory_gib.tolist() == pytest.approx([gib] * 15)


def test_any_parquet_reader_reads_a_run(tmp_path):
    data = pq.read_table(RunStore(tmp_path).save(short_run()))
    published = ("dp", "tp", "pp", "cp", "sp", "bucket", "zero", "chunks", "grad_accum")
    assert set(data.column_names) == {*COLUMNS, *published}
    for name, value in (("problem", "pco32"), ("optimizer", "random"), ("seed", 0)):
        assert data.column(name).to_pylist() == [value] * 15
    assert data.column("evaluation").to_pylist() == list(range(15))
    assert data.column("is_initial").to_pylist() == [True] * 10 + [False] * 5
    assert json.loads(data.schema.metadata[b"parabolt.run"])["key"]["optimizer"] == "random"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_initial": 10**400}, "n_initial: expected a count"),
        ({"n_initial": -1}, "n_initial: expected a count"),
        ({"optimum": 10**400}, "int too large"),
        ({"seed": 10**400}, "seed: expected a whole number below 2"),
        ({"problem": []}, "problem: expected a text"),
        ({"optimizer": "\ud800"}, "surrogates not allowed"),
    ],
)
def test_a_file_of_impossible_words_and_numbers_is_no_run(tmp_path, change, message):
    data = run_to_arrow(short_run())
    about = json.loads(data.schema.metadata[b"parabolt.run"])
    about |= {name: value for name, value in change.items() if name in about}
    about["key"] |= {name: value for name, value in change.items() if name in about["key"]}
    path = tmp_path / "x.parquet"
    pq.write_table(data.replace_schema_metadata({"parabolt.run": json.dumps(about)}), path)
    with pytest.raises(TableError, match=f"is no run of parabolt.*{message}"):
        RunStore(tmp_path).load(path)


@pytest.mark.parametrize("n_kept", [0, 200, -1])
def test_a_damaged_file_is_named_and_does_not_count(tmp_path, n_kept):
    store, run = RunStore(tmp_path), short_run()
    path = store.save(run)
    whole = path.read_bytes()
    flipped = bytes([whole[-1] ^ 1])
    path.write_bytes(whole[:n_kept] + (flipped if n_kept == -1 else b""))
    with pytest.raises(TableError, match=rf"{path.name} is damaged: its content is not what was"):
        store.load(path)
    assert store.find(run.key) is None
    assert store.damaged() == [path]


def test_a_file_under_the_name_of_another_run_does_not_count(tmp_path):
    store = RunStore(tmp_path)
    one, other = store.save(short_run(seed=0)), store.save(short_run(seed=1))
    one.write_bytes(other.read_bytes())
    assert list(store.finished().values()) == [other]


def test_a_directory_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot write"):
        RunStore(tmp_path / "file").save(short_run())


@pytest.mark.slow
def test_ctrl_c_leaves_finished_runs_and_the_same_command_goes_on(tmp_path):
    command = [
        sys.executable, "-c", "from parabolt.cli.main import run; run()", "bench", "pco64",
        "--optimizers", "logeic", "--seeds", "30", "--out", str(tmp_path),
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    while len(list(tmp_path.glob("runs/*.parquet"))) < 2:
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate()
    assert process.returncode == 130
    assert "finished runs are in" in output
    finished = sorted(tmp_path.glob("runs/*.parquet"))
    assert 2 <= len(finished) < 30
    store = RunStore(tmp_path)
    for path in finished:
        run = store.load(path)
        assert len(run) == 110
        assert store.find(run.key) == path


def test_design_grows_until_two_rows_are_feasible():
    is_feasible = np.zeros(40, dtype=bool)
    is_feasible[[3, 30]] = True
    rows = Protocol(n_evaluations=0).initial_rows(is_feasible, np.random.default_rng(0))
    assert is_feasible[rows].sum() == 2
    assert len(set(rows.tolist())) == len(rows) > 10
    assert is_feasible[rows[-1]]
    assert is_feasible[rows[:-1]].sum() == 1


def test_published_budgets():
    assert [Protocol.published(n).n_evaluations for n in ("pco16", "pco32", "pco64", "own")] == [
        100, 50, 100, 100,
    ]  # fmt: skip
    assert Protocol.published("pco32") == Protocol(50, 10, 2, 0.001, "allow")


def test_a_design_needs_candidates():
    few = np.array([True, False, False])
    with pytest.raises(OptionError, match=r"at least 10 candidates.*got 3 with 1 feasible"):
        Protocol(n_evaluations=1).initial_rows(few, np.random.default_rng(0))


def test_a_run_ends_where_the_candidates_do():
    from parabolt.tables.table import Table

    table = parabolt.load_table("pco32")
    problem = parabolt.TabularProblem(Table(table.data.slice(300, 20), table.instance))
    protocol = Protocol(n_evaluations=50, repeats="avoid")
    run = execute(problem, RunKey.of(problem, "random", 0, protocol))
    assert len(run) == len(set(run.configurations)) == 20


NO_THREADS = """
import os, sys
from parabolt.experiments.store import RunStore
threads = os.listdir("/proc/self/task")
runs = RunStore(sys.argv[1]).load_all()
assert runs
assert os.listdir("/proc/self/task") == threads
"""


def test_reading_runs_starts_no_thread(tmp_path):
    """A process that ends while one of Arrow's threads starts may be aborted."""
    RunStore(tmp_path).save(short_run())
    subprocess.run([sys.executable, "-c", NO_THREADS, tmp_path], check=True)
