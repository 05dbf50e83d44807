"""A real Slurm with two nodes on this machine, started by tests/slurm_cluster.sh."""

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from parabolt.instances.catalogue import load_instance
from parabolt.outcome import Status
from parabolt.space.configuration import Configuration
from parabolt.trials.attempt import AttemptRunner
from parabolt.trials.launchers.slurm import SlurmLauncher
from parabolt.trials.session import make_launcher
from parabolt.trials.tune import tune

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("slurm_cluster")]
TWO_HOSTS = Path(__file__).parent / "two_hosts.toml"
CONFIGURATION = Configuration(dp=4, bucket=2)

PROGRAM = """
import json, os, sys, time
task, fault = int(os.environ["SLURM_PROCID"]), sys.argv[1]
if fault == "oom" and task == 1:
    sys.exit("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.")
if fault == "crash" and task == 1:
    raise KeyError("optimizer")
if fault in ("oom", "crash", "sleep") or (fault == "once" and not os.path.exists("again")):
    open("began", "w").close()
    time.sleep(600)
if task == 0:
    open("arguments.json", "w").write(json.dumps(sys.argv[1:]))
    with open(os.environ["PARABOLT_REPORT"], "a") as file:
        for step in range(4):
            file.write(json.dumps({"step": step, "seconds": 0.5}) + "\\n")
"""


def spec_of(make_spec, *words, limit=60, options=()):
    sections = (
        f"[trial]\nwarmup_steps = 1\ntimed_steps = 3\ntime_limit_s = {limit}\n"
        f"[launcher]\nkind = 'slurm'\noptions = {list(options)}\n[budget]\ntrials = 1\n"
    )
    return make_spec(
        *words, "{configuration}", code=PROGRAM, sections=sections, instance=str(TWO_HOSTS)
    )


def run(spec, folder):
    return AttemptRunner(spec, make_launcher(spec)).run(CONFIGURATION, folder)


def when_it_began(folder, do):
    """Calls `do(job)` once the program of the job in `folder/a` is running."""

    def wait():
        end = time.monotonic() + 60
        while not (folder / "began").exists() and time.monotonic() < end:
            time.sleep(0.1)
        do((folder / "a/slurm_job").read_text().strip())

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def scontrol(*arguments):
    subprocess.run(["scontrol", *arguments], check=True, timeout=30)


def state(job):
    text = subprocess.run(
        ["scontrol", "show", "job", job], capture_output=True, text=True, check=True, timeout=30
    ).stdout
    return text.split("JobState=")[1].split()[0]


def test_a_job_on_two_nodes(make_spec, tmp_path):
    hostile = 'a b;c "d" $(touch pwned) `touch pwned` % * \\ | & > x'
    spec = spec_of(make_spec, "none", hostile)
    folder = tmp_path / "it's; touch pwned" / "100%s"
    attempt = run(spec, folder)
    assert attempt.verdict.status is Status.OK, attempt.verdict
    assert attempt.outcome.throughput == 2.0
    assert json.loads((tmp_path / "arguments.json").read_text())[:2] == ["none", hostile]
    assert sorted(p.name for p in (folder / "logs").iterdir()) == [
        "output.log", "task-0.log", "task-1.log",
    ]  # fmt: skip
    assert not list(tmp_path.rglob("pwned"))


@pytest.mark.parametrize(
    ("fault", "status", "reason"),
    [
        ("oom", Status.OOM, "CUDA out of memory"),
        ("crash", Status.CRASHED, "KeyError: 'optimizer'"),
    ],
)
def test_a_failing_task_ends_the_job(make_spec, tmp_path, fault, status, reason):
    """The other task would sleep for ten minutes, which is the time limit of a test."""
    attempt = run(spec_of(make_spec, fault), tmp_path / "a")
    assert attempt.verdict.status is status
    assert reason in attempt.verdict.reason


def test_a_hang(make_spec, tmp_path):
    attempt = run(spec_of(make_spec, "sleep", limit=1), tmp_path / "a")
    assert attempt.verdict.status is Status.TIMEOUT
    assert state((tmp_path / "a/slurm_job").read_text().strip()) == "CANCELLED"


def test_a_rejected_job(make_spec, tmp_path):
    attempt = run(spec_of(make_spec, "none", options=["--partition=absent"]), tmp_path / "a")
    assert attempt.verdict.status is Status.CRASHED
    assert "the scheduler rejected the job: sbatch: error" in attempt.verdict.reason
    assert "partition" in attempt.verdict.reason


def test_a_node_that_fails(make_spec, tmp_path):
    def fail(job):
        scontrol("update", "NodeName=n2", "State=DOWN", "Reason=test")

    thread = when_it_began(tmp_path, fail)
    attempt = run(spec_of(make_spec, "sleep", options=["--no-requeue"]), tmp_path / "a")
    thread.join()
    subprocess.run(["scontrol", "update", "NodeName=n2", "State=RESUME"], check=False, timeout=30)
    assert attempt.verdict.status is Status.NODE
    assert "a node of the job failed" in attempt.verdict.reason


def test_preemption(make_spec, tmp_path):
    def preempt(job):
        subprocess.run(
            ["sbatch", "--partition=urgent", "--nodes=2", "--exclusive", "--wrap=true",
             f"--output={tmp_path}/urgent.log"],
            check=True, timeout=30,
        )  # fmt: skip

    thread = when_it_began(tmp_path, preempt)
    attempt = run(spec_of(make_spec, "sleep", options=["--exclusive"]), tmp_path / "a")
    thread.join()
    assert attempt.verdict.status is Status.NODE
    assert "the job was preempted" in attempt.verdict.reason


def test_a_requeued_job_is_waited_for(make_spec, tmp_path):
    def requeue(job):
        (tmp_path / "a/report.jsonl").write_text('{"step": 0, "seconds": 9}\n')
        (tmp_path / "again").touch()
        scontrol("requeue", job)

    thread = when_it_began(tmp_path, requeue)
    attempt = run(spec_of(make_spec, "once", options=["--requeue"], limit=200), tmp_path / "a")
    thread.join()
    assert attempt.verdict.status is Status.OK, attempt.verdict
    assert attempt.outcome.throughput == 2.0, "the report of the first run must not count"


def test_leftovers_of_a_killed_session_are_cancelled(make_spec, tmp_path):
    spec = spec_of(make_spec, "sleep")
    runner = AttemptRunner(spec, make_launcher(spec))
    make_launcher(spec).start(runner._prepare(CONFIGURATION, tmp_path / "a"))
    launcher = SlurmLauncher(spec.instance.cluster)
    assert launcher.end_leftovers(tmp_path / "a")
    assert not launcher.end_leftovers(tmp_path / "a")
    assert state((tmp_path / "a/slurm_job").read_text().strip()) == "CANCELLED"


def test_ctrl_c_cancels_the_job(make_spec, tmp_path):
    spec_of(make_spec, "sleep")  # writes the program
    (tmp_path / "spec.toml").write_text(
        f"instance = '{TWO_HOSTS}'\n"
        f"command = ['{sys.executable}', 'program.py', 'sleep', '{{configuration}}']\n"
        "[launcher]\nkind = 'slurm'\n[budget]\ntrials = 1\n[optimizer]\nname = 'random'\n"
    )
    command = [Path(sys.executable).with_name("parabolt"), "tune", "spec.toml", "--out", "out"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while not (tmp_path / "began").exists() and time.monotonic() < end:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on from out" in errors
    (job,) = (tmp_path / "out").rglob("slurm_job")
    assert state(job.read_text().strip()) == "CANCELLED"


def test_the_reference_trainer_under_torchrun_on_two_nodes(make_spec, tmp_path):
    """One torchrun per node, which meet by the variables that the batch script sets."""
    command = [
        sys.executable, "-m", "torch.distributed.run", "--nproc-per-node={gpus_per_host}",
        "-m", "parabolt.trainer", "--configuration={configuration}", "--steps={steps}",
        "--n-layers={n_layers}", "--hidden-size={hidden_size}", "--batch-size={batch_size}",
    ]  # fmt: skip
    sections = (
        "[environment]\nPYTHONWARNINGS = 'ignore'\nGLOO_SOCKET_IFNAME = 'lo'\n"
        "[trial]\nwarmup_steps = 1\ntimed_steps = 3\ntime_limit_s = 240\nretries = 0\n"
        "[launcher]\nkind = 'slurm'\n[budget]\ntrials = 1\n[optimizer]\nname = 'random'\n"
    )
    spec = make_spec(command=command, sections=sections, instance=str(TWO_HOSTS))
    history = tune(spec, tmp_path / "out")
    (trial,) = history.told
    assert trial.outcome.status is Status.OK, trial.reason
    assert len(trial.statistics["peak_memory_per_gpu_gib"]) == 4


def test_the_instance_of_these_tests_has_two_hosts():
    assert load_instance(str(TWO_HOSTS)).cluster.n_hosts == 2
