"""Faults in real processes: each ends in the right outcome, and the search goes on."""

import pytest

from parabolt.errors import LaunchError
from parabolt.outcome import Status
from parabolt.space.configuration import Configuration
from parabolt.trials.attempt import AttemptRunner
from parabolt.trials.launchers.local import LocalLauncher
from parabolt.trials.tune import tune

#: Four ranks as processes, each with a log; `fault` says what happens. No sleep but in `hang`.
RANKS = r"""
import os, resource, signal, sys, time
fault = sys.argv[1]
logs, report = os.environ["PARABOLT_LOG_DIR"], os.environ["PARABOLT_REPORT"]
def rank_main(rank):
    if fault == "exit-1" and rank == 2:
        sys.exit(1)
    if fault == "oom-last" and rank == 3:
        limit = 300 * 2**20
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        kept = [bytearray(2**24) for _ in range(100)]
    if fault in ("oom-last", "sigkill", "exit-1") and rank == 0:
        raise ConnectionError("Connection closed by peer [127.0.0.1]:4242")
    if fault == "sigkill" and rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "hang" and rank == 1:
        time.sleep(600)
    if fault == "full-disk" and rank == 0:
        with open("/dev/full", "w") as file:
            file.write("checkpoint")
children = {}
for rank in range(4):
    child = os.fork()
    if child == 0:
        log = os.open(f"{logs}/rank-{rank}.log", os.O_WRONLY | os.O_CREAT)
        os.dup2(log, 1), os.dup2(log, 2)
        rank_main(rank)
        sys.exit(0)
    children[child] = rank
worst = 0
for _ in range(4):
    child, status = os.wait()
    worst = worst or os.waitstatus_to_exitcode(status)
if fault == "nothing":
    sys.exit(0)
if worst == 0:
    with open(report, "w") as file:
        for step in range(4):
            file.write('{"step": %d, "seconds": 0.5}\n' % step)
        if fault == "unreadable":
            file.write("\xff\x00 not a record\n")
sys.exit(1 if worst else 0)
"""
FAULTS = {
    "none": ("ok", ""),
    "sigkill": ("crashed", "Connection closed by peer"),
    "exit-1": ("crashed", "Connection closed by peer"),
    "oom-last": ("oom", "rank 3: MemoryError"),
    "hang": ("timeout", "hit the time limit"),
    "full-disk": ("crashed", "rank 0: OSError: [Errno 28] No space left on device"),
    "unreadable": ("crashed", "unreadable report, line 5: expected JSON"),
    "nothing": ("crashed", "too few steps: expected 1 warm-up and 3 timed steps, got 0 in all"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault(make_spec, tmp_path, fault):
    limit = 1.5 if fault == "hang" else 60
    sections = f"[trial]\nwarmup_steps = 1\ntimed_steps = 3\ntime_limit_s = {limit}\n"
    spec = make_spec(fault, "{configuration}", code=RANKS, sections=sections)
    attempt = AttemptRunner(spec, LocalLauncher()).run(
        Configuration(dp=16, bucket=64), tmp_path / "a"
    )
    status, reason = FAULTS[fault]
    assert attempt.verdict.status == status
    assert reason in attempt.verdict.reason
    taught = attempt.outcome
    assert (taught.memory_margin == 0.2) == (status == "oom"), "only oom teaches memory"
    assert (taught.throughput > 0) == (status == "ok")


CHOOSE = r"""
import os, sys
sizes = dict(word.split("=") for word in sys.argv[1].split())
if sizes["tp"] == "8" and not os.path.exists("was-here"):
    open("was-here", "w").close()
    sys.exit("RuntimeError: a passing fault")
if sizes["tp"] == "4":
    sys.exit("ValueError: tp 4 never works")
if sizes["dp"] == "16":
    sys.exit("torch.OutOfMemoryError: CUDA out of memory.")
if sizes["pp"] == "4":
    os.kill(os.getpid(), 9)
with open(os.environ["PARABOLT_REPORT"], "w") as file:
    for step in range(4):
        file.write('{"step": %d, "seconds": %d}\n' % (step, 10 - int(sizes["dp"])))
"""


def test_the_search_goes_on(make_spec, tmp_path):
    sections = "[budget]\ntrials = 14\n[optimizer]\nname = 'random'\nseed = 2\n"
    history = tune(make_spec("{configuration}", code=CHOOSE, sections=sections), tmp_path / "out")
    statuses = [trial.outcome.status for trial in history.told]
    assert sum(status is not Status.CRASHED for status in statuses) == 14
    for trial in history.told:
        c, ended = trial.configuration, trial.outcome.status
        if c.tp == 4:
            assert (ended, trial.reason) == (Status.CRASHED, "ValueError: tp 4 never works")
            assert trial.n_launched == 2
        elif c.dp == 16:
            assert ended is Status.OOM
        elif c.pp == 4:
            assert (ended, trial.n_launched) == (Status.CRASHED, 2)
        else:
            assert ended is Status.OK
    assert Status.CRASHED in statuses
    assert Status.OOM in statuses
    retried = [t for t in history.told if t.configuration.tp == 8 and t.n_launched == 2]
    assert len(retried) == 1
    assert history.incumbent.outcome.throughput == max(
        1 / (10 - t.configuration.dp) for t in history.told if t.outcome.is_feasible
    )


def test_a_broken_program_ends_the_search_with_its_error(make_spec, tmp_path):
    code = "raise ValueError('no data')"
    sections = "[budget]\ntrials = 14\n"
    with pytest.raises(LaunchError, match=r"the last 5 trials crashed.*ValueError: no data"):
        tune(make_spec("{configuration}", code=code, sections=sections), tmp_path / "out")
