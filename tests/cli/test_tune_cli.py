"""`tune` and `sweep` as a user meets them."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from command_line import COMMAND, parabolt
from parabolt.cli.interrupts import interrupted_by_signals
from parabolt.cli.trial_view import watching
from parabolt.journal.history import Trial, TrialHistory
from parabolt.outcome import Outcome
from parabolt.space.configuration import Configuration
from parabolt.trials.launchers.local import _marked_processes
from parabolt.trials.session import SessionState
from parabolt.trials.spec.file import load_spec, parse_spec

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tests/trials/scripted.py"
SMALL = ROOT / "tests/trials/small.toml"


@pytest.fixture
def spec(tmp_path):
    def write(*options, trials=5):
        words = [sys.executable, "-S", str(SCRIPT), "{configuration}", "--steps={steps}", *options]
        (tmp_path / "spec.toml").write_text(
            f"instance = '{SMALL}'\ncommand = {words}\n[trial]\nwarmup_steps = 1\ntimed_steps = 3\n"
            f"retries = 0\n[budget]\ntrials = {trials}\n[optimizer]\nname = 'random'\n"
        )

    return write


def test_tune_says_what_it_found_and_how_to_launch_it(spec, tmp_path):
    spec("--fault=oom-if-dp4")
    done = parabolt("tune", "spec.toml", "--out", "o", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "trial 0: " in done.stdout
    assert "iterations/s, 0.04 of 1 GiB, measured" in done.stdout
    assert "launch command: " in done.stdout
    assert "evidence: 5 trials (" in done.stdout
    again = json.loads(parabolt("tune", "spec.toml", "--out", "o", "--json", cwd=tmp_path).stdout)
    assert len(again["trials"]) == 5
    best = max((t for t in again["trials"] if t["status"] == "ok"), key=lambda t: t["throughput"])
    assert again["best"] == {**best, "trials": [best["trial"]]}
    words = " ".join(f"{knob}={size}" for knob, size in best["configuration"].items())
    assert again["launch_command"][3:] == [words, "--steps=4", "--fault=oom-if-dp4"]
    assert (tmp_path / "o" / best["folder"] / "report.jsonl").exists()
    assert parabolt("report", "o", cwd=tmp_path).stdout == "report: o/trials.html\n"
    assert "Search on small" in (tmp_path / "o/trials.html").read_text()


def test_sweep_ends_with_status_1_where_rows_are_missing(spec, tmp_path):
    spec("--fault=crash-if-tp4")
    done = parabolt("sweep", "spec.toml", "--out", "o", cwd=tmp_path)
    assert done.returncode == 1
    assert "no row for dp1 tp4" in done.stdout
    assert "crashed, ValueError: tp 4 is broken" in done.stdout
    assert (tmp_path / "o/sweep.csv").read_text().startswith("log2_dp_size,log2_tp_size,")


def test_the_launch_command_runs_as_printed(spec, tmp_path):
    """Fields of the trial have values, variables and directory are there, and it runs elsewhere."""
    (tmp_path / "work").mkdir()
    program = (
        "import os, sys; from pathlib import Path\n"
        "Path(sys.argv[3], 'x.log').write_text(os.environ['GREETING'])\n"
        "exec(Path(sys.argv[4]).read_text())"
    )
    (tmp_path / "program.py").write_text(program)
    words = [
        sys.executable, "-S", "../program.py", "{configuration}", "--steps={steps}", "{log_dir}",
        str(SCRIPT),
    ]  # fmt: skip
    (tmp_path / "spec.toml").write_text(
        f"instance = '{SMALL}'\ncommand = {words}\n[environment]\nGREETING = \"it's tp{{tp}}\"\n"
        "[launcher]\nworking_directory = 'work'\n"
        "[trial]\nwarmup_steps = 1\ntimed_steps = 3\n[budget]\ntrials = 1\n"
        "[optimizer]\nname = 'random'\n"
    )
    done = parabolt("tune", "spec.toml", "--out", "o", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = (x for x in done.stdout.splitlines() if x.startswith("launch command: "))
    line = line.removeprefix("launch command: ")
    ran = subprocess.run(line, shell=True, check=False, cwd="/", capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    tp = re.search(r"tp=(\d)", line)[1]
    assert (tmp_path / "o/launch/logs/x.log").read_text() == f"it's tp{tp}"
    assert len((tmp_path / "o/launch/report.jsonl").read_text().splitlines()) == 8
    assert "{" not in line


def test_a_pipe_keeps_the_figures(spec, tmp_path):
    spec("--fault=crash-if-tp4", "--seconds=0.5", trials=4)
    lines = parabolt("tune", "spec.toml", "--out", "o", cwd=tmp_path).stdout.splitlines()
    at = lines.index("trial 0 ok")
    assert re.fullmatch(
        r"  1\.998 iterations/s, 0\.04 GiB, \d+ s; 1 of 4 trials, 0\.\d{3} GPU-hours spent, "
        r"about 0\.000 saved",
        lines[at + 1],
    ), lines[at + 1]
    crashed = [i for i, line in enumerate(lines) if re.match(r"trial \d crashed: ValueError", line)]
    assert crashed
    assert " 1 crashed, 0." in lines[crashed[0] + 1], "failed trials show beside the budget"
    assert " of 4 trials + 1 crashed" in lines[crashed[0] + 1]
    assert f"{len(crashed)} set aside as crashed or node; --retry-crashed runs them again" in lines


def test_a_dry_run_launches_one_configuration_and_shows_what_it_read(spec, tmp_path):
    spec("--seconds=0.5")
    words = ("tune", "spec.toml", "--out", "o", "--dry-run", "--config", "dp=2 tp=2 bucket=16")
    done = parabolt(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "configuration: dp2 tp2 pp1 cp1 sp1 bucket16 zero0 chunks1" in done.stdout
    assert "--steps=4" in done.stdout
    assert "ended: ok" in done.stdout
    assert "read by report: 4 steps (0: 0.5 s, 1: 0.5005 s, 2: 0.501 s, 3: 0.5 s)" in done.stdout
    assert "peak memory: rank 0: 0.01 GiB, rank 1: 0.02 GiB" in done.stdout
    assert "throughput: 1.998 iterations/s over the 3 steps after 1 of warm-up" in done.stdout
    assert [path.name for path in (tmp_path / "o").iterdir()] == ["dry-run"], "no journal"
    again = parabolt("sweep", "spec.toml", "--out", "o", "--dry-run", "--json", cwd=tmp_path)
    result = json.loads(again.stdout)
    assert result["status"] == "ok"
    assert result["step_times_s"]["3"] == 0.5
    assert result["folder"].endswith("o/dry-run/2")


def test_a_dry_run_that_reads_nothing_says_so(spec, tmp_path):
    (tmp_path / "spec.toml").write_text(
        f"instance = '{SMALL}'\ncommand = ['echo', '{{configuration}}']\n"
        "[trial]\nlog_format = 'torchtitan'\n[budget]\ntrials = 1\n"
    )
    done = parabolt("tune", "spec.toml", "--out", "o", "--dry-run", cwd=tmp_path)
    assert done.returncode == 1
    assert "ended: crashed: too few steps" in done.stdout
    assert "read by torchtitan: no steps" in done.stdout
    assert "peak memory: not read" in done.stdout


def test_the_fastest_are_confirmed(spec, tmp_path):
    """Each of the three fastest runs once more, beyond the budget; again nothing is left to do."""
    spec("--noise", trials=4)
    done = parabolt("tune", "spec.toml", "--out", "o", "--confirm", "2", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    trials = result["trials"]
    assert len(trials) == 6
    by_speed = sorted(trials[:4], key=lambda t: -t["throughput"])
    again = [t["configuration"] for t in trials[4:]]
    assert again == [t["configuration"] for t in by_speed[:2]]
    pooled = {}
    for first, second in zip(by_speed[:2], trials[4:], strict=True):
        times = first["statistics"]["step_times_s"] + second["statistics"]["step_times_s"]
        pooled[len(times) / sum(times)] = [first["trial"], second["trial"]]
    assert result["best"]["throughput"] == pytest.approx(max(pooled))
    assert result["best"]["trials"] == pooled[max(pooled)]
    done = parabolt("tune", "spec.toml", "--out", "o", "--confirm", "2", cwd=tmp_path)
    assert f"from trials {', '.join(map(str, pooled[max(pooled)]))}, whose" in done.stdout
    assert "(std over 6 steps)" in done.stdout
    assert "evidence: 6 trials" in done.stdout


def test_a_journal_is_read_by_suggest_and_by_another_search(spec, tmp_path):
    spec(trials=3)
    assert parabolt("tune", "spec.toml", "--out", "o", cwd=tmp_path).returncode == 0
    done = parabolt("suggest", str(SMALL), "--trials", "o", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    tried = [t["configuration"] for t in json.loads(
        parabolt("tune", "spec.toml", "--out", "o", "--json", cwd=tmp_path).stdout
    )["trials"]]  # fmt: skip
    assert json.loads(done.stdout)["next"][0]["configuration"] not in tried
    other = SMALL.read_text().replace("sequence_length = 64", "sequence_length = 128")
    (tmp_path / "other.toml").write_text(other.replace('"small"', '"other"'))
    text = (tmp_path / "spec.toml").read_text().replace(str(SMALL), "other.toml")
    (tmp_path / "other-spec.toml").write_text(text.replace("random", "parabolt"))
    words = ("tune", "other-spec.toml", "--out", "p")
    done = parabolt(*words, "--history", "o", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = parabolt(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert "was begun with another optimizer.history, and goes on only with the same" in done.stderr
    done = parabolt("tune", "spec.toml", "--out", "q", "--history", "o", cwd=tmp_path)
    assert done.returncode == 2, "the random optimizer takes no history"
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_configuration_that_is_none_is_one_line(spec, tmp_path):
    spec()
    words = ("tune", "spec.toml", "--dry-run", "--config", "dp=3 bucket=2")
    done = parabolt(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1


def marked(folder):
    """Processes that were started for a trial below a folder."""
    return [p for path in folder.glob("trials/*/*") for p in _marked_processes(str(path))]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_ends_the_trial_and_says_how_to_go_on(spec, tmp_path, number):
    spec("--sleep=100")
    process = subprocess.Popen(
        [COMMAND, "tune", "spec.toml", "--out", "o"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    logs = tmp_path / "o/trials/0000/attempt-1/logs/output.log"
    while not logs.exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert errors.strip() == "stopped; the same command goes on from o"
    assert marked(tmp_path / "o") == []
    spec(trials=2)
    done = parabolt("tune", "spec.toml", "--out", "o", cwd=tmp_path)
    assert done.returncode == 2, "another command is another search"
    assert "begun with another command" in done.stderr


def test_only_the_first_signal_counts_and_nohup_is_respected():
    with interrupted_by_signals():
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGTERM)  # must not disturb what ends the trial
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupted_by_signals():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_mistake_is_one_line(tmp_path):
    (tmp_path / "spec.toml").write_text("instance = 'pco16'\ncommand = 'train {pt}'\n")
    done = parabolt("tune", "spec.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: spec.toml: 'train {pt}'") or "{pt}" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_live_view(tmp_path):
    spec = parse_spec(
        "instance = 'pco16'\ncommand = 'x {configuration}'", origin="x", folder=tmp_path
    )
    best = Trial(0, Configuration(dp=16, bucket=64), ending=Outcome.ok(2.5), wall_time_s=36.0)
    running = Trial(1, Configuration(dp=8, tp=2, bucket=64), n_launched=1)
    history = TrialHistory(trials=[best, running])
    screen = Console(file=io.StringIO(), force_terminal=True, width=140)
    with watching(screen, spec, 20, is_quiet=False) as observer:
        observer(SessionState(history, running, message="trial 1 crashed and is run again: x"))
        observer(SessionState(history, running, (0.5, 0.3), 18.0, expected_gain=0.125))
    text = screen.file.getvalue()
    for part in (
        "pco16: 1 of 20 trials, 0.240 GPU-hours spent, about 0.000 saved",
        "running trial 1: dp8 tp2",
        "2 of 10 timed steps, 18 s, 2.5 iterations/s so far, expected gain 0.125",
        "trial 1 crashed and is run again",
    ):
        assert part in text


def test_the_spec_of_the_documentation_is_one(tmp_path):
    text = (ROOT / "docs/tune.md").read_text(encoding="utf-8")
    section = text[text.index("## The spec") :]
    example = section.split("```toml\n")[1].split("```")[0].replace("mine.toml", "pco32")
    spec = parse_spec(example, origin="docs", folder=tmp_path)
    assert spec.launcher.gpus == (0, 1, 2, 3)
    uncommented = "\n".join(
        line.removeprefix("# ") if line.startswith("# ") and " = " in line else line
        for line in example.replace('"report"            #', '"patterns" #').splitlines()
        if "gpus = " not in line
    ).replace('kind = "local"', 'kind = "slurm"')
    assert parse_spec(uncommented, origin="docs", folder=tmp_path).trial.parser().has_memory


@pytest.mark.parametrize("path", ["examples/tune-pco4-cpu.toml", "data/pco4-cpu/spec.toml"])
def test_shipped_specs(path):
    spec = load_spec(ROOT / path)
    assert spec.instance.name == "pco4-cpu"
    assert (spec.budget is None) == path.startswith("data/")


@pytest.mark.slow
def test_the_demonstration(tmp_path):
    """A real search on 4 processes, killed and resumed on the way."""
    done = subprocess.run(
        [sys.executable, ROOT / "examples/demo_tune.py", tmp_path / "demo"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "took over the lock of process" in done.stdout
    assert re.search(r"ended what trial \d+ had left running", done.stdout)
    assert re.search("launch command: .* python -m parabolt.trainer ", done.stdout)
    assert "evidence: 12 trials" in done.stdout
