"""Real processes: what is launched is what was asked for, and all of it ends."""

import json

import pytest

from parabolt.outcome import Status
from parabolt.space.configuration import Configuration
from parabolt.trials.attempt import AttemptRunner
from parabolt.trials.launchers.local import LocalLauncher, _marked_processes

CONFIGURATION = Configuration(dp=4, tp=4, bucket=64)
#: Ends when it is told to by SIGTERM only after it has left a grandchild in a session of its own.
ORPHANER = """
import os, subprocess, sys, time
subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"],
                 start_new_session=True)
open(os.environ["PARABOLT_REPORT"], "w").write('{"step": 0, "seconds": 1}\\n')
if len(sys.argv) > 1 and sys.argv[1] == "stay":
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)
"""


def run(spec, folder, **options):
    return AttemptRunner(spec, LocalLauncher(**options)).run(CONFIGURATION, folder)


SHOW = """
import json, os, sys
open("shown.json", "w").write(json.dumps([sys.argv[1:], dict(os.environ)]))
"""


def test_arguments_and_environment_arrive_untouched(make_spec, tmp_path):
    hostile = 'a b;c "d" $(touch pwned) `touch pwned` * ~ \\n | & > x'
    spec = make_spec(
        hostile,
        "{tp}",
        "--c={configuration}",
        code=SHOW,
        sections=f"[environment]\nMINE = '''{hostile} {{dp}}'''\n",
    )
    folder = tmp_path / "out; touch pwned" / "it's $HOME"
    run(spec, folder, gpus=[3, 1])
    arguments, environment = json.loads((tmp_path / "shown.json").read_text())
    assert arguments[:2] == [hostile, "4"]
    assert Configuration.parse(arguments[2].removeprefix("--c=")) == CONFIGURATION
    assert environment["MINE"] == f"{hostile} 4"
    assert environment["PARABOLT_REPORT"] == f"{folder}/report.jsonl"
    assert environment["CUDA_VISIBLE_DEVICES"] == "3,1"
    assert not list(tmp_path.rglob("pwned"))


def test_the_folder_keeps_command_environment_and_logs(make_spec, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "secret")
    monkeypatch.setenv("NCCL_DEBUG", "WARN")
    attempt = run(make_spec(sections="[environment]\nMINE = 'x'\n"), tmp_path / "a")
    assert attempt.verdict.status is Status.OK
    assert json.loads((tmp_path / "a/command.json").read_text())[-1] == "--steps=4"
    kept = (tmp_path / "a/environment.json").read_text()
    assert '"MINE": "x"' in kept
    assert '"NCCL_DEBUG": "WARN"' in kept
    assert "secret" not in kept
    assert (tmp_path / "a/logs/output.log").exists()
    assert len((tmp_path / "a/report.jsonl").read_text().splitlines()) == 8


def test_a_finished_attempt(make_spec, tmp_path):
    attempt = run(make_spec("--seconds=0.5"), tmp_path / "a")
    outcome = attempt.outcome
    assert outcome.throughput == pytest.approx(3 / (0.5 * 3.003))
    assert outcome.peak_memory_gib == 0.04
    assert outcome.memory_margin == pytest.approx(0.04 / 80 - 1)
    assert 0 < outcome.wall_time_s < 20
    assert attempt.statistics.peak_memory_per_gpu_gib == (0.01, 0.02, 0.03, 0.04)


@pytest.mark.parametrize("mode", ["leave", "stay"])
def test_everything_ends_with_the_attempt(make_spec, tmp_path, mode):
    """Also what ignores SIGTERM, and what moved to another session, as torchrun's ranks do."""
    sections = "[trial]\nwarmup_steps = 0\ntimed_steps = 1\ntime_limit_s = 0.5\n"
    spec = make_spec(mode, "{configuration}", code=ORPHANER, sections=sections)
    attempt = run(spec, tmp_path / "a")
    assert attempt.verdict.status is (Status.OK if mode == "leave" else Status.TIMEOUT)
    assert _marked_processes(str(tmp_path / "a")) == []


def test_leftovers_of_a_killed_session_are_ended(make_spec, tmp_path):
    spec = make_spec("{configuration}", code="import time; time.sleep(600)")
    runner = AttemptRunner(spec, LocalLauncher())
    launch = runner._prepare(CONFIGURATION, tmp_path / "a")
    job = LocalLauncher().start(launch)
    assert job.wait(0.05) is None
    assert LocalLauncher().end_leftovers(tmp_path / "a")
    assert job.wait(20).exit_code == -9
    assert not LocalLauncher().end_leftovers(tmp_path / "a")


def test_a_program_that_is_not_there(make_spec, tmp_path):
    attempt = run(make_spec(command=["./absent", "{configuration}"]), tmp_path / "a")
    assert attempt.verdict.status is Status.CRASHED
    assert "cannot start './absent': [Errno 2]" in attempt.verdict.reason


def test_a_log_format_reads_the_logs_of_all_ranks(make_spec, tmp_path):
    code = """
import os
for rank in range(2):
    with open(os.path.join(os.environ["PARABOLT_LOG_DIR"], f"rank-{rank}.log"), "w") as file:
        file.write(f"peak {rank + 1}.5 GB\\n")
        if rank == 0:
            file.write("".join(f"it {i} took 250 ms\\n" for i in range(4)))
print("it 0 took 250 ms")  # as a launcher that tees
"""
    sections = (
        "[trial]\nwarmup_steps = 1\ntimed_steps = 3\nlog_format = 'patterns'\npatterns = ["
        "'it (?P<step>\\d+) took (?P<milliseconds>\\d+) ms', 'peak (?P<memory_gib>[0-9.]+) GB']\n"
    )
    spec = make_spec("{configuration}", code=code, sections=sections)
    attempt = run(spec, tmp_path / "a")
    assert attempt.verdict.reason == ""
    assert attempt.outcome.throughput == pytest.approx(4.0)
    assert attempt.statistics.peak_memory_per_gpu_gib == (1.5, 2.5)


def test_a_trial_that_cannot_win_is_stopped(make_spec, tmp_path):
    sections = "[trial]\nwarmup_steps = 1\ntimed_steps = 2000\n"
    spec = make_spec("--sleep=0.05", "--seconds=2", sections=sections)
    seen = []

    def stops(steps):
        seen.append(len(steps))
        return len(steps) >= 5

    attempt = AttemptRunner(spec, LocalLauncher()).run(CONFIGURATION, tmp_path / "a", stops=stops)
    assert attempt.verdict.status is Status.STOPPED
    assert attempt.outcome.throughput == pytest.approx(0.5, rel=0.01)
    n_seen = seen[-1]
    assert n_seen < 2000
    assert attempt.saved_s == pytest.approx((2000 - n_seen) * 2.002, abs=9.0)
    assert not attempt.outcome.is_feasible
