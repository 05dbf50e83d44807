"""What a directory of runs holds when its study changes, and what is refused before it runs."""

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import parabolt
from parabolt.errors import LockedError, OptionError, StoreError, StudyError
from parabolt.experiments.executors import local
from parabolt.experiments.executors.executor import TaskResult
from parabolt.experiments.results import read_results
from parabolt.experiments.runner import lock_store, run_study
from parabolt.experiments.store import RunStore
from parabolt.experiments.study import OptimizerChoice, Study


class Unsteady(parabolt.Optimizer):
    """Does not do the same twice, whatever the seed."""

    def _next_row(self, available):
        return int(np.random.default_rng().integers(len(available)))


class Crash(parabolt.Optimizer):
    """Fails on odd seeds after three proposals."""

    def _next_row(self, available):
        if self.seed % 2 and len(self.history) > 12:
            raise RuntimeError("singular")
        return self._random_row(available)


def study_of(*optimizers, problems=("pco4-cpu",), seeds=(0, 1), **protocol):
    choices = tuple(OptimizerChoice.of(found) for found in optimizers or ("random",))
    return Study(problems, choices, seeds, tuple({"n_evaluations": 4, **protocol}.items()))


@pytest.fixture
def run(tmp_path, here):
    def run(study, folder="out", observe=None, executor=here):
        problems = [parabolt.load_problem(name) for name in study.problems]
        return run_study(study, problems, tmp_path / folder, executor=executor, observe=observe)

    return run


def stored(folder):
    return {(r.key.optimizer, r.key.seed): r for r in RunStore(folder).load_all()}


def assert_same(ours, theirs):
    assert ours.keys() == theirs.keys()
    for name, one in ours.items():
        other = theirs[name]
        assert one.key == other.key
        assert list(one.configurations) == list(other.configurations)
        assert np.array_equal(one.observed, other.observed)
        assert np.array_equal(one.recommended, other.recommended, equal_nan=True)


def test_a_larger_budget_extends_the_finished_runs(run, tmp_path):
    run(study_of(n_evaluations=3))
    final = run(study_of(n_evaluations=6))
    assert (final.n_total, final.n_done, final.n_failed) == (2, 2, 0)
    run(study_of(n_evaluations=6), "whole")
    assert_same(stored(tmp_path / "out"), stored(tmp_path / "whole"))


def test_a_smaller_budget_is_cut_from_the_finished_runs(run, tmp_path):
    run(study_of(n_evaluations=6))
    seen = []
    final = run(study_of(n_evaluations=3), observe=seen.append)
    assert (final.n_total, final.n_done) == (2, 2)
    assert len(seen) == 1  # nothing was run
    run(study_of(n_evaluations=3), "whole")
    runs = RunStore(tmp_path / "out").load_all()
    short = {(r.key.optimizer, r.key.seed): r for r in runs if len(r) == 13}
    assert_same(short, stored(tmp_path / "whole"))
    assert len(runs) == 4  # the longer ones stay
    assert [
        len(group.runs) for b in read_results([tmp_path / "out"]).boards for group in b.groups
    ] == [2, 2]


def test_a_run_that_the_seed_does_not_fix_cannot_be_extended(run, tmp_path):
    run(study_of(Unsteady, n_evaluations=3))
    final = run(study_of(Unsteady, n_evaluations=6))
    assert (final.n_done, final.n_failed) == (0, 2)
    failed = RunStore(tmp_path / "out").load_failures()
    assert failed[0].reason.startswith("its first 3 evaluations differ from those of the finished")
    assert {len(r) for r in stored(tmp_path / "out").values()} == {13}


def test_runs_of_several_workers_are_not_cut_or_extended(run, tmp_path):
    run(study_of(n_evaluations=6, workers=2))
    seen = []
    assert run(study_of(n_evaluations=3, workers=2), observe=seen.append).n_done == 2
    assert len(seen) == 3


def test_seeds_that_are_left_out_stay_and_are_not_counted(run, tmp_path):
    run(study_of(seeds=(0, 1, 2)))
    final = run(study_of(seeds=(1, 5)))
    assert (final.n_total, final.n_done) == (2, 2)
    assert {seed for _, seed in stored(tmp_path / "out")} == {0, 1, 2, 5}


def test_failed_runs_stay_in_sight(run, tmp_path):
    final = run(study_of(Crash, "random", seeds=(0, 1, 2, 3)))
    assert (final.n_done, final.n_failed) == (6, 2)
    (board,) = read_results([tmp_path / "out"]).boards
    crash, random = board.groups
    assert crash.summary.startswith("2 of 4 runs; 2 failed: RuntimeError: singular (test_runner.py")
    assert random.summary == "4 of 4 runs"
    assert board.common_seeds() == (0, 1, 2, 3)
    assert board.common_seeds("left-out") == (0, 2)
    assert [run.is_stand_in for run in board.counted()["Crash"]] == [False, True, False, True]


def test_two_tables_of_one_instance_and_labels_alike_are_kept_apart(run, tmp_path):
    table = parabolt.load_table("pco4-cpu")
    index = table.data.schema.get_field_index("throughput_mean")
    faster = pa.array(table.data["throughput_mean"].to_numpy() * 1.3)
    data = table.data.set_column(index, "throughput_mean", faster)
    parabolt.Table(data, table.instance).to_parquet(tmp_path / "second.parquet")
    study = Study(
        problems=("pco4-cpu", str(tmp_path / "second.parquet")),
        optimizers=tuple(OptimizerChoice("random", f"rand{sign}1") for sign in " /_"),
        seeds=(0, 1),
        protocol=(("n_evaluations", 2),),
    )
    final = run(study)
    assert (final.n_total, final.n_done) == (12, 12)
    assert len(list((tmp_path / "out" / "runs").iterdir())) == 12
    assert len(final.leaders) == 2
    boards = read_results([tmp_path / "out"]).boards
    assert [len(board.groups) for board in boards] == [3, 3]
    assert run(study).n_done == 12


@pytest.mark.parametrize(
    ("study", "error", "message"),
    [
        (study_of(n_initial=100), OptionError, r"\[protocol\] on pco4-cpu: .*100 candidates"),
        (study_of(min_feasible=60), OptionError, "60 of them feasible, got 80 with 58 feasible"),
        (study_of(noise_std=-1), OptionError, "noise_std: expected a number >= 0, got -1"),
        (study_of(repeats="never"), OptionError, "repeats: expected one of avoid, allow"),
        (
            Study(("pco4-cpu",), (OptimizerChoice("random", "a\ud83d"),), (0,)),
            StudyError, r"expected labels of whole characters, got 'a\\ud83d'",
        ),
        (
            Study(("pco4-cpu", "pco4-cpu"), study_of().optimizers, (0,)),
            StudyError, "problems: expected distinct problems",
        ),
        (
            Study(("pco4-cpu",), (OptimizerChoice("random", "a", (("seed", 3),)),), (0,)),
            OptionError, "options: expected none of seed, rng, repeats, .* got seed",
        ),
        (
            Study(("pco4-cpu",), (OptimizerChoice("tpe", "a", (("x", object()),)),), (0,)),
            OptionError, "options: expected plain values .*got x = <object",
        ),
    ],
)  # fmt: skip
def test_nothing_runs_before_everything_is_known_to_be_good(run, tmp_path, study, error, message):
    with pytest.raises(error, match=message):
        run(study)
    assert not list(tmp_path.iterdir())


class Removing:
    """Computes runs, and meanwhile somebody removes what is stored."""

    n_workers = 1

    def __init__(self, remove):
        self.remove = remove

    def map(self, function, items, limits):
        for index, item in enumerate(items):
            yield TaskResult(index, function(item))
        self.remove()


def test_done_is_what_can_be_read_back(run, tmp_path):
    def damage():
        next((tmp_path / "out" / "runs").iterdir()).write_bytes(b"PAR1")

    with pytest.raises(StudyError, match=r"2 runs finished, and 1 can be read back from .*out: "):
        run(study_of(), executor=Removing(damage))
    final = run(study_of())
    assert final.n_done == 2
    (notice,) = final.notices
    assert notice.endswith(".parquet.damaged")
    assert "could not be read back" in notice
    assert run(study_of()).notices == ()
    with pytest.raises(StudyError, match="3 runs finished, and 0 can be read back"):
        run(
            study_of(seeds=(0, 1, 2)),
            executor=Removing(lambda: shutil.rmtree(tmp_path / "out" / "runs")),
        )


def test_one_writer(run, tmp_path):
    run(study_of())
    with lock_store(tmp_path / "out"), pytest.raises(LockedError, match="in use by"):
        run(study_of())
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot write to"):
        run(study_of(), "file")


HANGING = """
import os
import time
import numpy as np
import parabolt

class Hangs(parabolt.Optimizer):
    def _next_row(self, available):
        while self.seed == 1:
            open(os.environ["BEGUN"], "w").close()
            time.sleep(1)
        if self.seed == 2:
            np.empty(2**40)
        return self._random_row(available)
"""


def test_a_run_that_hangs_or_takes_too_much_memory_fails_alone(tmp_path, monkeypatch):
    (tmp_path / "hanging.py").write_text(HANGING)
    monkeypatch.syspath_prepend(str(tmp_path))
    begun = tmp_path / "begun"
    monkeypatch.setenv("BEGUN", str(begun))
    # A clock that stands still until the run hangs: the load of the machine must not matter.
    monkeypatch.setattr(local, "time", SimpleNamespace(monotonic=lambda: 1000.0 * begun.exists()))
    results = parabolt.run_study(
        "pco4-cpu", ["hanging:Hangs", "random"], seeds=3, folder=tmp_path / "out",
        executor="local:1",
        protocol={"n_evaluations": 2, "run_time_limit_s": 4, "run_memory_limit_gib": 8},
    )  # fmt: skip
    (board,) = results.boards
    hangs, random = board.groups
    assert [run.key.seed for run in hangs.runs] == [0]
    reasons = {failed.key.seed: failed.reason for failed in hangs.failed}
    assert reasons[1] == "ended: it took longer than run_time_limit_s = 4"
    assert reasons[2].startswith("MemoryError: Unable to allocate 8.00 TiB")
    assert reasons[2].endswith("run_memory_limit_gib = 8")
    assert random.is_complete
    about = json.loads((tmp_path / "out" / "study.json").read_text())
    assert about["study"]["protocol"]["run_time_limit_s"] == 4
