"""`parabolt study submit`, `check`, `status` and `clean`, in this process."""

import dataclasses
import hashlib
import json
import sys

import numpy as np
import pytest

import parabolt
from parabolt.cli.main import run as run_command
from parabolt.experiments.runner import run_study
from parabolt.experiments.store import RunStore
from parabolt.experiments.study import OptimizerChoice, Study


@pytest.fixture
def folder(tmp_path, monkeypatch, here):
    """A study of three finished runs, in the current directory."""
    monkeypatch.chdir(tmp_path)
    study = Study(
        problems=("pco4-cpu",),
        optimizers=(OptimizerChoice("random", "random"),),
        seeds=(0, 1, 2),
        protocol=(("n_evaluations", 3),),
    )
    run_study(study, [parabolt.load_problem("pco4-cpu")], tmp_path / "mine", executor=here)
    return tmp_path / "mine"


@pytest.fixture
def command(monkeypatch, capfd):
    """Runs `parabolt study`; gives its exit status, output and errors."""

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["parabolt", "study", *words])
        monkeypatch.setattr(sys, "path", list(sys.path))
        with pytest.raises(SystemExit) as ended:
            run_command()
        return (ended.value.code or 0, *capfd.readouterr())

    return call


def test_submit_and_check(folder, command, tmp_path):
    status, told, _ = command("submit", "mine")
    assert status == 0
    first, second, third = told.splitlines()
    assert first == f"bundled 3 finished and 0 failed runs: {tmp_path / 'mine.zip'}"
    digest = hashlib.sha256((tmp_path / "mine.zip").read_bytes()).hexdigest()
    assert second == f"SHA-256 {digest}"
    assert third.endswith("parabolt study check mine.zip")
    assert command("check", "mine.zip", "--runs", "2")[:2] == (
        0, "2 of 2 runs came out the same, of 3\n",
    )  # fmt: skip
    status, told, _ = command("submit", "mine", "--out", "other.zip", "--json")
    assert json.loads(told) == {
        "path": "other.zip", "sha256": digest, "n_runs": 3, "n_failed": 0,
    }  # fmt: skip
    found = json.loads(command("check", "other.zip", "--json")[1])
    assert sorted(found["checked"]) == [f"pco4-cpu, random, seed {seed}" for seed in (0, 1, 2)]
    assert (found["n_runs"], found["different"]) == (3, [])


def test_check_ends_with_status_1_where_a_run_differs(folder, command):
    store = RunStore(folder)
    run = store.load_all()[1]
    store.save(dataclasses.replace(run, observed=np.full(len(run), 9.0)))
    command("submit", "mine")
    assert command("check", "mine.zip")[:2] == (
        1,
        f"2 of 3 runs came out the same, of 3\ndifferent: pco4-cpu, random, seed {run.key.seed}\n",
    )


def test_what_cannot_be_published_or_checked_is_one_line(folder, command, tmp_path):
    next((folder / "runs").iterdir()).unlink()
    (tmp_path / "bad.zip").write_bytes(b"PK")
    for words, message in (
        (("submit", "mine"), "1 of 3 runs are missing, such as random on pco4-cpu, seed "),
        (("submit", "nowhere"), "expected a study's directory, got nowhere without a study.json"),
        (("check", "bad.zip"), "bad.zip is no bundle of a study"),
        (("check", "nothing.zip"), "nothing.zip is no bundle of a study"),
        (("check", "bad.zip", "--runs", "0"), "Invalid value for '--runs'"),
    ):
        status, told, errors = command(*words)
        assert (status, told) == (2, "")
        assert message in errors
        assert "Traceback" not in errors
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    "text", ["", "[1]", '{"leaders": [1]}', '{"leaders": {"a": [1]}}', "[" * 9999]
)
def test_status_counts_what_is_there_whatever_progress_says(folder, command, text):
    (folder / "progress.json").write_text(text)
    assert command("status", "mine")[:2] == (0, "3 of 3 runs done, 0 failed\n")
