import json
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import parabolt
from parabolt.errors import JournalError, LaunchError, OptionError, SpecError, UnknownNameError
from parabolt.instances.catalogue import load_instance
from parabolt.instances.search_space import SearchSpace
from parabolt.optimizers.registry import make_optimizer
from parabolt.outcome import Outcome, Source, Status
from parabolt.tables.publishing.provenance import Provenance
from parabolt.tables.table import Table
from parabolt.trials.sweep import sweep
from parabolt.trials.tune import tune

BUDGET = "[budget]\ntrials = 8\n[optimizer]\nname = '{}'\nn_initial = 4\n"


def told(history):
    return [
        (t.configuration, t.outcome.status, t.outcome.throughput, t.outcome.memory_margin)
        for t in history.told
    ]


@pytest.mark.parametrize("name", ["logeic", "tpe"])
def test_a_search_asks_what_the_optimizer_alone_would(make_spec, tmp_path, name):
    spec = make_spec("--fault=oom-if-dp4", sections=BUDGET.format(name))
    history = tune(spec, tmp_path / "out")
    optimizer = make_optimizer(name, SearchSpace.lattice(spec.instance), seed=0, n_initial=4)
    for trial in history.told:
        assert optimizer.ask() == trial.configuration
        optimizer.tell(trial.configuration, trial.outcome)
    assert {t.outcome.status for t in history.told} == {Status.OK, Status.OOM}
    best = history.incumbent
    assert best.outcome.throughput == max(
        t.outcome.throughput for t in history.told if t.outcome.is_feasible
    )


def test_a_finished_search_goes_on_with_a_larger_budget(make_spec, tmp_path):
    whole = tune(make_spec(sections=BUDGET.format("logeic")), tmp_path / "whole")
    small = BUDGET.format("logeic").replace("8", "5")
    assert len(tune(make_spec(sections=small), tmp_path / "parts").told) == 5
    parts = tune(make_spec(sections=BUDGET.format("logeic")), tmp_path / "parts")
    assert told(parts) == told(whole)
    n_lines = len((tmp_path / "parts/journal.jsonl").read_text().splitlines())
    assert n_lines == 1 + 8 * 3  # created; asked, launched, ended: nothing was run twice


def test_another_spec_is_refused(make_spec, tmp_path):
    tune(make_spec(sections=BUDGET.format("random").replace("n_initial = 4", "")), tmp_path / "o")
    with pytest.raises(JournalError, match="begun with another command, optimizer"):
        tune(make_spec("--seconds=1", sections=BUDGET.format("logeic")), tmp_path / "o")
    with pytest.raises(JournalError, match="begun with another purpose"):
        sweep(
            make_spec(sections=BUDGET.format("random").replace("n_initial = 4", "")), tmp_path / "o"
        )


def test_mistakes_are_told_before_anything_is_made(make_spec, tmp_path):
    for sections, error in (
        ("", SpecError),
        (BUDGET.format("logiec"), UnknownNameError),
        (BUDGET.format("random"), OptionError),
        (BUDGET.format("logeic") + "seed = -1\n", SpecError),
    ):
        with pytest.raises(error):
            tune(make_spec(sections=sections), tmp_path / "out")
        assert not (tmp_path / "out").exists()


def test_other_budgets(make_spec, tmp_path):
    spec = make_spec(sections="[budget]\ngpu_hours = 1e-6\n[optimizer]\nname = 'random'\n")
    history = tune(spec, tmp_path / "a")
    assert history.wall_time_s * 16 / 3600 >= 1e-6
    assert len(history.told) == 1


def test_early_termination_saves_time_and_never_wins(make_spec, tmp_path):
    """Steps are reported at once, so that a slow trial is known before it ends."""
    code = """
import json, os, sys, time
sizes = dict(word.split("=") for word in sys.argv[1].split())
slow = sizes["dp"] != "8"
with open(os.environ["PARABOLT_REPORT"], "a", buffering=1) as file:
    for step in range(30):
        if slow and step == 10:
            time.sleep(600)  # were it not stopped, it would hit the time limit
        seconds = (2 if slow else 1) + 0.01 * (step % 2)
        file.write(json.dumps({"step": step, "seconds": seconds}) + "\\n")
"""
    sections = (
        "[trial]\nwarmup_steps = 1\ntimed_steps = 29\ntime_limit_s = 20\n"
        "[budget]\ntrials = 6\n[optimizer]\nname = 'random'\nseed = 3\n[early_termination]\n"
    )
    spec = make_spec("{configuration}", code=code, sections=sections)
    history = tune(spec, tmp_path / "out")
    first_fast = next(t.number for t in history.told if t.configuration.dp == 8)
    stopped = [t for t in history.told if t.outcome.status is Status.STOPPED]
    assert stopped
    for trial in history.told:
        expected = Status.OK if trial.configuration.dp == 8 else Status.STOPPED
        if trial.number < first_fast:
            expected = Status.TIMEOUT  # with nothing to beat, nothing is stopped
        assert trial.outcome.status is expected
    assert history.incumbent.configuration.dp == 8
    for trial in stopped:
        assert trial.saved_s == pytest.approx(20 * 2.005, rel=0.01)
        assert trial.outcome.throughput == pytest.approx(0.5, rel=0.02)
        assert np.isnan(trial.outcome.memory_margin)


def test_a_stopped_trial_informs_the_model_and_cannot_win():
    space = SearchSpace.lattice(load_instance("pco16"))
    rng = np.random.default_rng(0)
    rows = rng.choice(len(space), 12, replace=False)

    def taught(status):
        optimizer = make_optimizer("logeic", space, seed=0)
        for row in rows[:8]:
            optimizer.tell(space.candidates[row], Outcome.ok(1.0 + 0.01 * row, memory_margin=-0.5))
        for row in rows[8:]:
            stopped = Outcome(status, throughput=99.0, throughput_source=Source.MEASURED)
            told = stopped if status is Status.STOPPED else Outcome(status)
            optimizer.tell(space.candidates[row], told)
        return optimizer

    stopped, crashed = taught(Status.STOPPED), taught(Status.CRASHED)
    assert stopped.surrogate().mean[rows[8]] > crashed.surrogate().mean[rows[8]] + 1
    for optimizer in (stopped, crashed):
        assert optimizer.history.best_feasible_row() in rows[:8]
    assert np.array_equal(
        stopped.surrogate().margin_mean, crashed.surrogate().margin_mean
    )  # neither teaches memory


def test_a_stopped_trial_teaches_physics_how_fast_it_was():
    space = SearchSpace.lattice(load_instance("pco16"))
    told = range(0, len(space), 150)

    def belief(status):
        optimizer = make_optimizer("parabolt", space, seed=0)
        for row in told:
            stopped = Outcome(status, throughput=0.01, throughput_source=Source.MEASURED)
            told_outcome = stopped if status is Status.STOPPED else Outcome(status)
            optimizer.tell(space.candidates[row], told_outcome)
        assert optimizer.recommend() is None  # it can't be recommended
        return optimizer.belief()

    stopped, crashed = belief(Status.STOPPED), belief(Status.CRASHED)
    assert stopped.log_throughput.mean[told] == pytest.approx(np.log(0.01), abs=0.3)
    assert (crashed.log_throughput.mean > stopped.log_throughput.mean + 1.0).all()
    assert np.array_equal(stopped.peak_memory_gib, crashed.peak_memory_gib)


SMALL = Path(__file__).parent / "small.toml"


def test_a_sweep_writes_an_export_that_is_a_table(make_spec, tmp_path):
    spec = make_spec("--fault=oom-if-dp4", instance=str(SMALL))
    history = sweep(spec, tmp_path / "out")
    space = SearchSpace.lattice(spec.instance)
    assert [t.configuration for t in history.told] == list(space.candidates)
    table = Table.from_csv(tmp_path / "out/sweep.csv", spec.instance)
    outcomes = table.outcomes
    assert len(table) == len(space)
    assert 0 < outcomes.is_feasible.sum() < len(table)
    for row, trial in enumerate(history.told):
        if trial.outcome.is_feasible:
            assert outcomes.throughput[row] == trial.outcome.throughput
            assert outcomes.wall_time_s[row] == trial.outcome.wall_time_s
            steps = json.loads(table.data.column("all_time_steps")[row].as_py())
            assert steps == trial.statistics["step_times_s"]
    again = sweep(spec, tmp_path / "out")
    assert told(again) == told(history)
    provenance = Provenance.load(tmp_path / "out/sweep.csv")
    assert provenance.gpu == "", "the instance names none"
    assert provenance.command == shlex.join(spec.command.arguments)
    assert provenance.software == f"measured with parabolt {parabolt.__version__}"
    assert provenance.date == datetime.now(UTC).date().isoformat()


def test_a_sweep_says_by_which_gpu_it_was_measured(make_spec, tmp_path):
    (tmp_path / "small.toml").write_text(
        SMALL.read_text()
        .replace("[cluster]", "[cluster]\ngpu = 'h100-80gb'")
        .replace("[1, 2, 4]\ntp = [1, 2, 4]", "[4]\ntp = [1]")
    )
    history = sweep(make_spec(instance="small.toml"), tmp_path / "out")
    assert len(history.told) == 4
    assert Provenance.load(tmp_path / "out/sweep.csv").gpu == "h100-80gb"


def test_a_sweep_gives_no_row_to_what_crashed(make_spec, tmp_path):
    spec = make_spec(
        "--fault=crash-if-tp4", instance=str(SMALL),
        sections="[trial]\nwarmup_steps = 1\ntimed_steps = 3\nretries = 0\n",
    )  # fmt: skip
    history = sweep(spec, tmp_path / "out")
    crashed = [t.configuration for t in history.told if t.was_set_aside]
    assert crashed == [c for c in SearchSpace.lattice(spec.instance).candidates if c.tp == 4]
    table = Table.from_csv(tmp_path / "out/sweep.csv", spec.instance)
    assert len(table) == len(history.told) - len(crashed)


def test_a_sweep_needs_memory(make_spec, tmp_path):
    code = (
        "import os; open(os.environ['PARABOLT_REPORT'], 'w').write("
        r"""''.join('{"step": %d, "seconds": 1}\n' % i for i in range(4)))"""
    )
    spec = make_spec("{configuration}", code=code, instance=str(SMALL))
    with pytest.raises(LaunchError, match="no peak memory was reported, and a table needs it"):
        sweep(spec, tmp_path / "out")


@pytest.mark.slow
def test_kill_and_resume_at_200_points(tmp_path):
    """See kill_points.py: each way of being killed, at each record and in each attempt."""
    driver = Path(__file__).parent / "kill_points.py"
    done = subprocess.run(
        [sys.executable, str(driver), str(tmp_path)], capture_output=True, text=True, check=False,
        timeout=290,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["n_points"] >= 200
    assert result["different"] == []
    assert result["n_leftover_processes"] == 0
    assert result["n_launched_more_than_once_too_often"] == 0
