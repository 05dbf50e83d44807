import dataclasses
import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import parabolt
from parabolt.errors import LockedError, OptionError, StudyError, UnknownNameError
from parabolt.experiments.executors.executor import TaskResult
from parabolt.experiments.executors.local import LocalExecutor
from parabolt.experiments.manifest import load_manifest
from parabolt.experiments.run import execute
from parabolt.experiments.runner import run_study
from parabolt.experiments.store import RunStore
from parabolt.experiments.study import (
    OptimizerChoice,
    Study,
    parse_study,
    read_study,
    study_of,
)

TEXT = """
problems = ["pco32"]
optimizers = ["random", { name = "logeic", label = "eager", options = { n_initial = 5 } }]
seeds = 2
executor = "local:2"

[protocol]
n_evaluations = 6
"""


def run(study, folder, **options):
    problems = [parabolt.load_problem(name) for name in study.problems]
    return run_study(study, problems, folder, **options)


def assert_same_results(one, other):
    for a, b in zip(RunStore(one).load_all(), RunStore(other).load_all(), strict=True):
        assert a.key == b.key
        assert a.configurations == b.configurations
        for name in ("observed", "recommended"):
            assert np.array_equal(getattr(a, name), getattr(b, name), equal_nan=True)


def test_a_study_file():
    study = parse_study(TEXT)
    assert study.problems == ("pco32",)
    assert study.optimizers[1] == OptimizerChoice("logeic", "eager", (("n_initial", 5),))
    assert study.seeds == (0, 1)
    protocol = study.protocol_of("pco32")
    assert (protocol.n_evaluations, protocol.n_initial, protocol.noise_std) == (6, 10, 0.001)
    assert study_of(json.loads(json.dumps(study.as_json()))) == study


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('problems = ["pco32"]', "", "study: expected problems, got"),
        ('problems = ["pco32"]', 'problems = ["pco32", "pco32"]', "expected distinct names"),
        ('problems = ["pco32"]', "problems = 3", "problems: expected texts, got 3"),
        ("seeds = 2", "seeds = -2", "seeds: expected a count up to 1000000 or distinct .*got -2"),
        (
            "seeds = 2",
            "seeds = [1, 1]",
            r"or distinct whole numbers from 0 to 4294967295, got \[1, 1\]",
        ),
        ("seeds = 2", "sedes = 2", r"expected keys among .*, got sedes"),
        ("n_evaluations", "n_evals", r"\[protocol\]: expected keys among"),
        ('label = "eager"', 'label = "random"', "expected distinct labels, got random twice"),
        ("options = { n_initial = 5 }", "options = 5", "expected options as a table, got 5"),
        ("[protocol]", "[protocol", "expected TOML"),
    ],
)
def test_a_bad_study_file_gives_one_clear_error(tmp_path, old, new, message):
    path = tmp_path / "study.toml"
    assert old in TEXT
    path.write_text(TEXT.replace(old, new))
    with pytest.raises(StudyError, match=message) as caught:
        read_study(path)
    assert "\n" not in str(caught.value)


def test_protocol_values_are_checked(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(TEXT.replace("n_evaluations = 6", "n_evaluations = -1"))
    with pytest.raises(OptionError, match="n_evaluations: expected a whole number >= 0, got -1"):
        read_study(path)
    with pytest.raises(StudyError, match="cannot read study file"):
        read_study(tmp_path / "absent.toml")


def test_results_are_those_of_running_each_alone(tmp_path):
    study = parse_study(TEXT)
    seen = []
    final = run(study, tmp_path, observe=seen.append)
    assert (final.n_total, final.n_done, final.n_failed) == (4, 4, 0)
    assert [p.n_done for p in seen] == [0, 1, 2, 3, 4]
    assert seen[1].n_running == 2
    assert seen[2].remaining_s > 0
    assert set(final.leaders) == {"pco32"}
    runs = RunStore(tmp_path).load_all()
    assert [(r.key.optimizer, r.key.method) for r in runs] == [
        ("eager", "logeic"), ("eager", "logeic"), ("random", "random"), ("random", "random"),
    ]  # fmt: skip
    for found in runs:
        again = execute(parabolt.load_problem("pco32"), found.key)
        assert found.configurations == again.configurations
        assert np.array_equal(found.observed, again.observed)


def test_resuming_runs_what_is_missing_and_nothing_else(tmp_path):
    study = parse_study(TEXT)
    run(study, tmp_path / "whole")
    run(study, tmp_path / "part")
    store = RunStore(tmp_path / "part")
    kept, *removed = sorted((tmp_path / "part" / "runs").iterdir())
    stamp = kept.stat().st_mtime_ns
    for path in removed:
        path.unlink()
    (tmp_path / "part" / "runs" / "x.parquet.77.tmp").write_text("half")
    final = run(study, tmp_path / "part")
    assert final.n_done == 4
    assert kept.stat().st_mtime_ns == stamp
    assert len(store.finished()) == 4
    assert not list((tmp_path / "part" / "runs").glob("*.tmp"))
    assert_same_results(tmp_path / "whole", tmp_path / "part")


def test_what_the_results_were_made_with_is_saved(tmp_path):
    run(parse_study(TEXT), tmp_path)
    found = load_manifest(tmp_path)
    assert found.study == parse_study(TEXT)
    assert {key.content_hash[:12] for key in found.keys} == {"3c4334851441"}
    assert {key.protocol.noise_std for key in found.keys} == {0.001}
    assert [(key.optimizer, key.seed) for key in found.keys] == [
        ("random", 0), ("random", 1), ("eager", 0), ("eager", 1),
    ]  # fmt: skip
    assert set(found.keys) == {run.key for run in RunStore(tmp_path).load_all()}
    assert found.environment["numpy"] == np.__version__
    assert found.environment["n_cores"] == str(os.cpu_count())


@pytest.mark.parametrize(("given", "expected"), [("", 10), (", options = { n_initial = 5 }", 5)])
def test_defaults_of_options_are_filled_in(tmp_path, given, expected):
    run(parse_study(TEXT.replace(", options = { n_initial = 5 }", given)), tmp_path)
    about = json.loads((tmp_path / "study.json").read_text())
    eager = about["optimizers"][1]
    assert (eager["label"], eager["options"]["n_initial"]) == ("eager", expected)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("n_initial = 5", "n_initial = 6", r"another eager on pco32 \(options: .*'n_initial', 5"),
        ('name = "logeic"', 'name = "lognei"', "method: logeic there, lognei now"),
        ("n_evaluations = 6", "noise_std = 0.5", "noise_std: 0.001 there, 0.5 now"),
        ("n_evaluations = 6", 'feedback = "status"', "feedback: default there, status now"),
    ],
)
def test_results_of_something_else_are_not_mixed(tmp_path, old, new, message):
    run(parse_study(TEXT), tmp_path)
    with pytest.raises(StudyError, match=message) as caught:
        run(parse_study(TEXT.replace(old, new)), tmp_path)
    assert "try another directory" in str(caught.value)


def test_results_of_another_parabolt_or_of_other_libraries_are_not_mixed(tmp_path, monkeypatch):
    run(parse_study(TEXT), tmp_path)
    store = RunStore(tmp_path)
    for found in store.load_all():
        store.remove(found.key)
        store.save(dataclasses.replace(found, key=dataclasses.replace(found.key, parabolt="9.9")))
    with pytest.raises(StudyError, match=r"parabolt: 9\.9 there, "):
        run(parse_study(TEXT), tmp_path)
    about = json.loads((tmp_path / "study.json").read_text())
    about["environment"]["numpy"] = "0.9.1"
    (tmp_path / "study.json").write_text(json.dumps(about))
    with pytest.raises(StudyError, match=r"results of numpy 0\.9\.1, and .* is installed"):
        run(parse_study(TEXT), tmp_path)


def test_a_later_format_is_refused(tmp_path):
    (tmp_path / "study.json").write_text('{"format": 99}')
    with pytest.raises(StudyError, match="expected format 2 or before, got 99; try a newer"):
        run(parse_study(TEXT), tmp_path)


def test_more_seeds_may_be_added(tmp_path):
    run(parse_study(TEXT), tmp_path)
    final = run(parse_study(TEXT.replace("seeds = 2", "seeds = 3")), tmp_path)
    assert (final.n_total, final.n_done) == (6, 6)
    assert {key.seed for key in load_manifest(tmp_path).keys} == {0, 1, 2}


def test_nothing_runs_with_an_unknown_optimizer_or_option(tmp_path):
    with pytest.raises(UnknownNameError, match="unknown optimizer 'sota'"):
        run(parse_study(TEXT.replace('"random"', '"sota"')), tmp_path / "a")
    with pytest.raises(OptionError, match="n_inital"):
        run(parse_study(TEXT.replace("n_initial", "n_inital")), tmp_path / "b")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("options", ["{}", "{ without = ['censoring'] }"])
def test_a_study_whose_optimizer_has_lists_as_options_is_resumed(tmp_path, options):
    listed = f"[{{ name = 'parabolt', options = {options} }}]"
    study = parse_study(f"problems = ['pco32']\noptimizers = {listed}\nseeds = 1")
    shorter = dataclasses.replace(study, protocol=(("n_evaluations", 2),))
    assert run(shorter, tmp_path).n_done == 1
    again = dataclasses.replace(shorter, seeds=(0, 1))
    assert run(again, tmp_path).n_done == 2
    assert len(list((tmp_path / "runs").iterdir())) == 2


def test_two_studies_in_one_directory(tmp_path):
    script = textwrap.dedent("""
        import sys, time
        from pathlib import Path
        from parabolt.lock import Lock
        with Lock(Path(sys.argv[1], "lock.json"), of=Path(sys.argv[1])):
            print("held", flush=True)
            sys.stdin.read()
    """)
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(LockedError, match=f"in use by process {holder.pid} on host"):
        run(parse_study(TEXT), tmp_path)
    holder.kill()
    holder.communicate()
    assert run(parse_study(TEXT), tmp_path).n_done == 4  # the lock died with its holder


def poisoned(optimizer_seed):
    """A run that kills its process."""
    if optimizer_seed == 3:
        os._exit(9)
    if optimizer_seed == 5:
        raise RuntimeError("always crashes")
    return optimizer_seed * 10


def answers(executor, items):
    return {a.index: a for a in executor.map(poisoned, items)}


def check_answers(found):
    assert {i: a.value for i, a in found.items() if not a.error} == {
        0: 0, 1: 10, 2: 20, 4: 40, 6: 60,
    }  # fmt: skip
    assert found[3].n_attempts == 3
    assert found[3].error
    assert found[5].error.startswith("RuntimeError: always crashes (")
    assert found[5].details.startswith("Traceback")


def test_local_processes_that_die_are_retried_and_the_rest_goes_on():
    found = answers(LocalExecutor(2), range(7))
    check_answers(found)
    assert found[3].error == "the worker process died (exit status 9)"


def die_once(marker):
    if not marker.exists():
        marker.write_text("")
        os._exit(9)
    return "second try"


def test_a_worker_that_dies_once_is_no_failure(tmp_path):
    (answer,) = LocalExecutor(2).map(die_once, [tmp_path / "marker"])
    assert (answer.value, answer.error, answer.n_attempts) == ("second try", "", 2)


# Pickled by value, so that workers need not import the tests.
poisoned.__module__ = die_once.__module__ = "__main__"


@pytest.mark.slow
def test_a_real_dask_cluster(tmp_path):
    import dask
    import distributed

    from parabolt.experiments.executors.addresses import make_executor

    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        address = cluster.scheduler_address.removeprefix("tcp://")
        check_answers(answers(make_executor(f"dask://{address}"), range(7)))
        assert cluster.scheduler.allowed_failures == dask.config.get(
            "distributed.scheduler.allowed-failures"
        )
        study = parse_study(TEXT)
        final = run(study, tmp_path / "dask", executor=make_executor(f"dask://{address}"))
        assert final.n_done == 4
    run(study, tmp_path / "local")
    assert_same_results(tmp_path / "dask", tmp_path / "local")


@pytest.mark.slow
def test_a_real_ray_cluster(tmp_path):
    from parabolt.experiments.executors.addresses import make_executor

    study = parse_study(TEXT)
    final = run(study, tmp_path / "ray", executor=make_executor("ray://local"))
    assert final.n_done == 4
    check_answers(answers(make_executor("ray://local"), range(7)))
    run(study, tmp_path / "local")
    assert_same_results(tmp_path / "ray", tmp_path / "local")


@pytest.mark.slow
def test_dask_through_a_real_slurm(slurm_cluster, tmp_path):
    import dask

    from parabolt.experiments.executors.addresses import make_executor

    with pytest.raises(OptionError, match=r"cores and memory.*DASK_JOBQUEUE__SLURM__CORES"):
        make_executor("dask://slurm?jobs=2")
    configured = {
        "cores": 1, "memory": "1GB", "log-directory": str(slurm_cluster),
        "job-directives-skip": ["--mem"],  # the test's nodes don't manage memory
    }  # fmt: skip
    study = parse_study(TEXT)
    with dask.config.set({f"jobqueue.slurm.{name}": value for name, value in configured.items()}):
        final = run(study, tmp_path / "slurm", executor=make_executor("dask://slurm?jobs=2"))
    assert final.n_done == 4
    jobs = subprocess.run(["scontrol", "show", "job"], capture_output=True, text=True).stdout
    assert jobs.count("JobName=dask-worker") == 2
    run(study, tmp_path / "local")
    assert_same_results(tmp_path / "slurm", tmp_path / "local")


@pytest.mark.parametrize("address", ["", "local:0", "local:x", "slurm", "dask://", "spark://x"])
def test_addresses_of_executors(address):
    from parabolt.experiments.executors.addresses import make_executor

    with pytest.raises(OptionError, match="executor: expected local"):
        make_executor(address)


def test_a_failed_run_is_told_and_tried_again(tmp_path):
    class Failing(LocalExecutor):
        """Fails the first run, as a poisoned run would, and computes the others."""

        def map(self, function, items, limits):
            yield TaskResult(0, error="poisoned", details="Traceback: poisoned", n_attempts=1)
            yield from (TaskResult(i, function(item)) for i, item in enumerate(items) if i > 0)

    study = parse_study(TEXT)
    final = run(study, tmp_path, executor=Failing(1))
    assert (final.n_done, final.n_failed) == (3, 1)
    (failure,) = (tmp_path / "failed").iterdir()
    (failed,) = RunStore(tmp_path).load_failures()
    assert (failed.reason, failed.details) == ("poisoned", "Traceback: poisoned")
    assert failed.key.seed == 0
    assert failed.optimum == parabolt.load_problem("pco32").optimum.value
    assert json.loads(failure.read_text())["reason"] == "poisoned"
    assert run(study, tmp_path).n_done == 4
    assert not list((tmp_path / "failed").iterdir())


def test_study_of_study_values_is_a_value():
    assert parse_study(TEXT) == parse_study(TEXT)
    assert hash(parse_study(TEXT)) == hash(parse_study(TEXT))
    assert Study(("a",), (OptimizerChoice("x", "x"),), (0,)) != parse_study(TEXT)
