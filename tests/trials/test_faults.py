"""Faults in real processes: each ends in the right outcome, and the search goes on."""

import pytest

from parabolt.errors import LaunchError
from parabolt.journal.file import JOURNAL, read_journal
from parabolt.journal.history import TrialHistory
from parabolt.outcome import Status
from parabolt.space.configuration import Configuration
from parabolt.trials.attempt import AttemptRunner
from parabolt.trials.launchers.local import LocalLauncher
from parabolt.trials.sweep import sweep
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
    with pytest.raises(
        LaunchError,
        match=r"the last 5 configurations crashed.*ValueError: no data.*the same command",
    ):
        tune(make_spec("{configuration}", code=code, sections=sections), tmp_path / "out")


#: What a program does of whose configurations nothing is known beforehand, by its bucket.
SPLIT = r"""
import json, os, pathlib, sys
bucket, n = sys.argv[1], int(sys.argv[2])
runs = pathlib.Path(f"runs-{bucket}")
runs.write_text(str(int(runs.read_text()) + 1 if runs.exists() else 1))
if bucket == "2":
    sys.exit("AssertionError: world size (4) is not divisible by tensor_model_parallel_size 3")
if bucket == "4" and runs.read_text() != "4":
    sys.exit("RuntimeError: CUDA error: uncorrectable ECC error encountered")
if bucket == "8" and os.path.exists("BROKEN"):
    sys.exit("ValueError: bucket 8 is broken")
with open(os.environ["PARABOLT_REPORT"], "a") as file:
    for step in range(n):
        file.write(json.dumps({"step": step, "seconds": 1.0, "rank": 0}) + "\n")
    file.write(json.dumps({"rank": 0, "peak_memory_gib": 0.5}) + "\n")
"""
BUCKETS = """
name = "buckets"
model = {n_layers = 4, n_heads = 4, hidden_size = 64, ffn_size = 256}
cluster = {n_gpus = 4, n_hosts = 1, memory_gib = 1}
workload = {sequence_length = 64, batch_size = 8}
knobs = {dp = [4], bucket = [%s]}
"""


def split_spec(make_spec, tmp_path, code=SPLIT, buckets="2, 4, 8, 16"):
    (tmp_path / "buckets.toml").write_text(BUCKETS % buckets)
    return make_spec("{bucket}", "{steps}", code=code, instance=str(tmp_path / "buckets.toml"))


def test_what_is_run_again_and_what_is_not(make_spec, tmp_path):
    (tmp_path / "BROKEN").touch()
    spec = split_spec(make_spec, tmp_path)
    history = sweep(spec, tmp_path / "out")
    ended = {t.configuration.bucket: (t.outcome.status, t.n_launched) for t in history.told}
    assert ended == {2: ("invalid", 1), 4: ("ok", 4), 8: ("crashed", 2), 16: ("ok", 1)}
    invalid = history.told[0]
    assert "world size (4) is not divisible" in invalid.reason
    assert not invalid.is_counted
    assert not invalid.was_set_aside

    (tmp_path / "BROKEN").unlink()
    again = sweep(spec, tmp_path / "out")
    assert [t.n_launched for t in again.told] == [1, 4, 2, 1], "nothing is run again unasked"
    mended = sweep(spec, tmp_path / "out", retry_crashed=True)
    assert [(t.outcome.status, t.n_launched) for t in mended.told] == [
        ("invalid", 1), ("ok", 4), ("ok", 3), ("ok", 1),
    ]  # fmt: skip
    assert len((tmp_path / "out/sweep.csv").read_text().splitlines()) == 1 + 3


def test_a_node_that_never_comes_back_is_set_aside(make_spec, tmp_path):
    code = "import sys; sys.exit('RuntimeError: No CUDA GPUs are available')"
    spec = split_spec(make_spec, tmp_path, code, buckets="2, 4, 8, 16")
    with pytest.raises(LaunchError, match=r"the last 3 trials lost their place.*No CUDA GPUs"):
        sweep(spec, tmp_path / "out")
    history = TrialHistory.of(read_journal(tmp_path / "out" / JOURNAL))
    assert [t.n_launched for t in history.trials] == [6, 6, 6]
    assert [t.ending for t in history.trials] == [None] * 3, "they run again once it is mended"


def test_a_broken_program_that_is_mended_loses_nothing(make_spec, tmp_path):
    """Its crashes were the program's fault: the same command runs them again."""
    broken = (
        f"import os, sys\nif os.path.exists('BROKEN'): sys.exit('ValueError: no data')\n{SPLIT}"
    )
    (tmp_path / "BROKEN").touch()
    spec = split_spec(make_spec, tmp_path, broken, buckets="16, 32, 64, 128, 256, 512, 1024")
    with pytest.raises(LaunchError, match=r"the last 5 configurations crashed.*no data"):
        sweep(spec, tmp_path / "out")
    (tmp_path / "BROKEN").unlink()
    history = sweep(spec, tmp_path / "out")
    assert [t.outcome.status for t in history.told] == ["ok"] * 7
    assert len((tmp_path / "out/sweep.csv").read_text().splitlines()) == 1 + 7


def test_a_search_goes_on_after_trials_were_reopened(make_spec, tmp_path):
    """The optimizer is asked and told again in the order of the journal."""
    code = r"""
import json, os, sys
sizes = dict(word.split("=") for word in sys.argv[1].split())
if sizes["tp"] == "4" and os.path.exists("BROKEN"):
    sys.exit("ValueError: tp 4 is broken")
with open(os.environ["PARABOLT_REPORT"], "w") as file:
    for step in range(4):
        file.write(json.dumps({"step": step, "seconds": 1 + int(sizes["pp"])}) + "\n")
"""
    sections = "[budget]\ntrials = {}\n[optimizer]\nname = 'logeic'\nn_initial = 6\n"
    (tmp_path / "BROKEN").touch()
    events = []

    def run(n, **options):
        spec = make_spec("{configuration}", code=code, sections=sections.format(n))
        return tune(spec, tmp_path / "out", observer=lambda s: events.append(s.message), **options)

    crashed = [t for t in run(9).told if t.was_set_aside]
    assert crashed
    (tmp_path / "BROKEN").unlink()
    mended = run(9, retry_crashed=True)
    assert all(t.outcome.status is Status.OK for t in mended.told)
    assert f"{len(crashed)} trials that were set aside run again" in events
    longer = run(11 + len(crashed))
    assert len(longer.told) == 11 + len(crashed)
    assert not any("would not ask" in event for event in events)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"step": 0, "seconds": 1' + "0" * 400 + "}", "line 1: expected a whole step and its sec"),
        ('{"step": 0, "seconds": 1' + "0" * 5000 + "}", "line 1: expected JSON"),
        ("[" * 100_000, "line 1: expected JSON"),
        ('{"step": 0, "seconds": 1e-320}', "too few steps"),
        ('{"rank": 0, "peak_memory_gib": 1e400}', "expected a positive peak memory, got inf"),
    ],
)
def test_no_line_of_a_report_ends_the_search(make_spec, tmp_path, line, reason):
    code = f"import os\nopen(os.environ['PARABOLT_REPORT'], 'a').write({line!r} + chr(10))\n"
    sections = (
        "[trial]\nwarmup_steps = 0\ntimed_steps = 3\nretries = 0\n"
        "[budget]\ntrials = 1\n[optimizer]\nname = 'random'\n"
    )
    spec = make_spec("{configuration}", code=code, sections=sections)
    with pytest.raises(LaunchError, match="the last 5 configurations crashed") as caught:
        tune(spec, tmp_path / "out")
    assert reason in str(caught.value)


def test_step_times_that_cannot_be(make_spec, tmp_path):
    line = '{"step": %d, "seconds": 1e-320}\n'
    code = (
        "import os\nfile = open(os.environ['PARABOLT_REPORT'], 'a')\n"
        f"for step in range(4): file.write({line!r} % step)\n"
    )
    attempt = AttemptRunner(make_spec("{configuration}", code=code), LocalLauncher()).run(
        Configuration(dp=16, bucket=64), tmp_path / "a"
    )
    assert attempt.verdict.status is Status.CRASHED
    assert "step times of 9.99989e-321 to 9.99989e-321 s cannot be" in attempt.verdict.reason


@pytest.mark.parametrize(
    ("log_format", "line"),
    [
        ("report", '{"rank": 2, "peak_memory_gib": 83.5}'),
        ("torchtitan", "step: 4  loss: 9.1  memory: 83.5GiB(50%)  tps: 1,000"),
    ],
)
def test_a_peak_above_the_capacity_is_refused_with_its_line(make_spec, tmp_path, log_format, line):
    """pco16 has GPUs of 80 GiB; a program that reports another unit would publish nonsense."""
    code = r"""
import os
file = open(os.environ["PARABOLT_REPORT"], "a")
for step in range(4):
    file.write('{"step": %d, "seconds": 1}\n' % step)
    print(f"step: {step + 1}  loss: 9.1  memory: {80 + step}.5GiB(50%)  tps: 1,000")
file.write('{"rank": 2, "peak_memory_gib": 83.5}\n')
"""
    sections = f"[trial]\nwarmup_steps = 1\ntimed_steps = 3\nlog_format = '{log_format}'\n"
    spec = make_spec("{configuration}", code=code, sections=sections)
    attempt = AttemptRunner(spec, LocalLauncher()).run(
        Configuration(dp=16, bucket=64), tmp_path / "a"
    )
    rank = 2 if log_format == "report" else 0
    assert attempt.verdict.status is Status.CRASHED
    assert attempt.verdict.reason == (
        f"rank {rank}: a peak of 83.5 GiB in a GPU of 80 GiB cannot be; try [trial] memory_gib, "
        f"or the unit, of the line {line!r}"
    )
    assert attempt.statistics is None
