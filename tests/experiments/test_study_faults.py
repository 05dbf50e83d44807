"""A study that is killed, whose disk is full or which may not write loses nothing."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import parabolt
from parabolt.errors import StoreError, TableError
from parabolt.experiments.runner import run_study
from parabolt.experiments.store import RunStore
from parabolt.experiments.study import parse_study
from parabolt.files import write_whole

TEXT = """
problems = ["pco32"]
optimizers = ["random", "logeic"]
seeds = 6
executor = "local:2"

[protocol]
n_evaluations = 12
"""

COMMAND = [sys.executable, "-c", "from parabolt.cli.main import run; run()", "study", "run"]


@pytest.fixture
def study_file(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(TEXT)
    return path


@pytest.mark.slow
def test_killed_at_fifty_moments_it_ends_like_an_uninterrupted_study(tmp_path, study_file):
    whole = tmp_path / "whole"
    run_study(parse_study(TEXT), [parabolt.load_problem("pco32")], whole)
    expected = RunStore(whole).load_all()
    rng = np.random.default_rng(0)
    store, n_kills, n_ends = None, 0, 0
    while n_kills < 50:
        if store is None:
            folder = tmp_path / f"killed-{n_ends}"
            store = RunStore(folder)
        process = subprocess.Popen(
            [*COMMAND, str(study_file), "--out", str(folder), "--json"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            process.wait(timeout=0.3 + 2.2 * rng.random())
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            n_kills += 1
            for path in (folder / "runs").glob("*.parquet"):
                assert len(store.load(path)) == 22  # whole, or not there
            continue
        assert process.returncode == 0
        check_results(store.load_all(), expected)
        store, n_ends = None, n_ends + 1
    run_study(parse_study(TEXT), [parabolt.load_problem("pco32")], folder)
    check_results(RunStore(folder).load_all(), expected)


def check_results(found, expected):
    assert [run.key for run in found] == [run.key for run in expected]
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.configurations == theirs.configurations
        assert np.array_equal(ours.observed, theirs.observed)
        assert np.array_equal(ours.recommended, theirs.recommended, equal_nan=True)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], check=False,
        capture_output=True,
    )  # fmt: skip
    if mounted.returncode != 0:
        pytest.skip("may not mount a tmpfs here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_loses_no_finished_run(small_disk, tmp_path, study_file):
    done = subprocess.run(
        [*COMMAND, str(study_file), "--out", str(small_disk)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "no space left for" in done.stderr
    assert done.stderr.count("\n") == 1
    store = RunStore(small_disk)
    assert 1 <= len(store.finished()) < 12
    for run in store.load_all():
        assert len(run) == 22
    assert not list(small_disk.glob("runs/*.tmp"))


def test_a_read_only_place(tmp_path):
    with pytest.raises(StoreError, match="cannot write /proc/parabolt"):
        write_whole(__import__("pathlib").Path("/proc/parabolt/x"), b"")


@pytest.mark.slow
def test_ctrl_c_and_sigterm_end_cleanly_and_resume(tmp_path, study_file):
    folder = tmp_path / "out"
    for number in (signal.SIGINT, signal.SIGTERM):
        process = subprocess.Popen(
            [*COMMAND, str(study_file), "--out", str(folder)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        before = len(RunStore(folder).finished())
        while len(RunStore(folder).finished()) <= before:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        output, errors = process.communicate()
        assert process.returncode == 130, errors
        assert "finished runs are in" in output
        assert "Traceback" not in errors
    done = subprocess.run(
        [*COMMAND[:-1], "resume", str(folder), "--json"], capture_output=True, text=True, check=True
    )
    assert '"n_done": 12' in done.stdout


def test_a_run_of_a_later_format_is_refused(tmp_path):
    import json

    import pyarrow.parquet as pq

    study = parse_study(TEXT.replace("seeds = 6", "seeds = 1").replace(', "logeic"', ""))
    run_study(study, [parabolt.load_problem("pco32")], tmp_path)
    (path,) = (tmp_path / "runs").iterdir()
    data = pq.read_table(path)
    about = {**json.loads(data.schema.metadata[b"parabolt.run"]), "format": 3}
    data = data.replace_schema_metadata({"parabolt.run": json.dumps(about)})
    path.unlink()
    pq.write_table(data, path.with_name("later.parquet"))
    with pytest.raises(TableError, match="expected a run of format 2 or before, got 3; try a"):
        RunStore(tmp_path).load_all()
