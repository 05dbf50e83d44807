"""A study in one file: what is bundled comes out again, and what was changed is noticed."""

import dataclasses
import zipfile

import numpy as np
import pytest

import parabolt
from parabolt.errors import StudyError
from parabolt.experiments.bundle import check_bundle, make_bundle
from parabolt.experiments.results import read_results
from parabolt.experiments.runner import run_study
from parabolt.experiments.store import FailedRun, RunStore
from parabolt.experiments.study import OptimizerChoice, Study


@pytest.fixture
def folder(tmp_path, here):
    parabolt.load_table("pco4-cpu").to_parquet(tmp_path / "mine.parquet")
    study = Study(
        problems=(str(tmp_path / "mine.parquet"),),
        optimizers=(OptimizerChoice("random", "random"),),
        seeds=(0, 1, 2),
        protocol=(("n_evaluations", 3),),
    )
    problems = [parabolt.load_problem(study.problems[0])]
    run_study(study, problems, tmp_path / "study", executor=here)
    return tmp_path / "study"


def test_a_bundle_is_whole_and_its_runs_come_out_again(folder, tmp_path):
    bundle = make_bundle(folder, tmp_path / "b.zip")
    assert (bundle.n_runs, bundle.n_failed, len(bundle.sha256)) == (3, 0, 64)
    assert make_bundle(folder, tmp_path / "c.zip").sha256 == bundle.sha256
    (tmp_path / "mine.parquet").unlink()  # the bundle holds the table
    check = check_bundle(tmp_path / "b.zip", n_runs=2, seed=1)
    assert check.n_runs == 3
    assert len(set(check.checked)) == 2
    assert check.different == ()


def test_a_bundle_is_read_as_the_directory_that_it_was(folder, tmp_path):
    failed = RunStore(folder).load_all()[2]
    RunStore(folder).remove(failed.key)
    RunStore(folder).save_failure(FailedRun(failed.key, "RuntimeError: singular"))
    make_bundle(folder, tmp_path / "b.zip")
    (group,) = read_results([tmp_path / "b.zip"]).boards[0].groups
    assert group.summary == "2 of 3 runs; 1 failed: RuntimeError: singular"
    store = RunStore(tmp_path / "mine")
    store.save(dataclasses.replace(failed, key=dataclasses.replace(failed.key, optimizer="mine")))
    (board,) = read_results([tmp_path / "mine", tmp_path / "b.zip"]).boards
    assert [group.label for group in board.groups] == ["random", "mine"]
    (tmp_path / "c.zip").write_bytes(b"PK")
    with pytest.raises(StudyError, match=r"c\.zip is no bundle of a study"):
        read_results([tmp_path / "mine", tmp_path / "c.zip"])


def test_a_run_that_does_not_come_out_again_is_named(folder, tmp_path):
    store = RunStore(folder)
    run = store.load_all()[1]
    store.save(dataclasses.replace(run, observed=np.full(len(run), 9.0)))
    make_bundle(folder, tmp_path / "b.zip")
    check = check_bundle(tmp_path / "b.zip", n_runs=9)
    assert len(check.checked) == 3
    assert check.different == (f"pco4-cpu, random, seed {run.key.seed}",)


def test_what_is_not_whole_is_refused(folder, tmp_path):
    make_bundle(folder, tmp_path / "b.zip")
    with zipfile.ZipFile(tmp_path / "b.zip", "a") as archive:
        archive.writestr("runs/more.parquet", b"")
    with pytest.raises(StudyError, match="its files are not those that SHA256SUMS names"):
        check_bundle(tmp_path / "b.zip")
    (tmp_path / "b.zip").write_bytes(b"x")
    with pytest.raises(StudyError, match=r"b\.zip is no bundle of a study"):
        check_bundle(tmp_path / "b.zip")
    next((folder / "runs").iterdir()).write_bytes(b"")
    with pytest.raises(StudyError, match="1 of 3 runs are missing, such as random on pco4-cpu"):
        make_bundle(folder, tmp_path / "b.zip")
    with pytest.raises(StudyError, match="expected a study's directory"):
        make_bundle(tmp_path, tmp_path / "b.zip")
