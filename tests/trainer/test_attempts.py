"""The reference trainer as a trial: its memory, its limit, and the loss of a rank."""

import os
import signal
import sys
import threading
import time

import pytest

from parabolt.outcome import Status
from parabolt.space.configuration import Configuration
from parabolt.trials.attempt import AttemptRunner
from parabolt.trials.launchers.local import LocalLauncher, _marked_processes
from parabolt.trials.spec.file import parse_spec

pytestmark = pytest.mark.slow


def spec_of(folder, *words, steps=3):
    command = [
        sys.executable, "-m", "parabolt.trainer", "--configuration={configuration}",
        "--n-layers={n_layers}", "--n-heads={n_heads}", "--hidden-size={hidden_size}",
        "--ffn-size={ffn_size}", "--sequence-length={sequence_length}",
        "--batch-size={batch_size}", "--steps={steps}", "--vocabulary-size=512", *words,
    ]  # fmt: skip
    sections = (
        "[environment]\nPYTHONWARNINGS = 'ignore'\nOMP_NUM_THREADS = '1'\n"
        f"[trial]\nwarmup_steps = 1\ntimed_steps = {steps}\ntime_limit_s = 120\n"
        "memory_gib = 1.0\n"  # of what is no GPU
    )
    quoted = ", ".join(f"'''{word}'''" for word in command)
    text = f"instance = 'pco4-cpu'\ncommand = [{quoted}]\n{sections}"
    return parse_spec(text, origin="test.toml", folder=folder)


def run(spec, text, folder):
    return AttemptRunner(spec, LocalLauncher()).run(Configuration.parse(text), folder)


def test_memory_is_measured_and_limited(tmp_path):
    """Replicas need more than shards, and a limit between the two tells them apart."""
    free = spec_of(tmp_path)
    replicated = run(free, "dp=4 bucket=2", tmp_path / "a")
    sharded = run(free, "dp=4 zero=3 bucket=2", tmp_path / "b")
    assert replicated.verdict.status is sharded.verdict.status is Status.OK
    high, low = replicated.outcome.peak_memory_gib, sharded.outcome.peak_memory_gib
    # Weights, gradients and two moments of 6.6 million float32: 0.098 GiB, or a quarter of it.
    assert high > 0.098
    assert low < 0.75 * high
    assert len(replicated.statistics.peak_memory_per_gpu_gib) == 4
    middle = (high + low) / 2
    limited = spec_of(tmp_path, f"--memory-gib={middle:.4f}")
    failed = run(limited, "dp=4 bucket=2", tmp_path / "c")
    assert failed.verdict.status is Status.OOM, failed.verdict
    assert failed.outcome.memory_margin == 0.2
    fits = run(limited, "dp=4 zero=3 bucket=2", tmp_path / "d")
    assert fits.verdict.status is Status.OK, fits.verdict
    assert fits.outcome.peak_memory_gib < middle


def test_a_rank_that_is_killed_is_a_crash(tmp_path):
    folder, is_over = tmp_path / "a", threading.Event()

    def kill_a_rank():
        while not is_over.is_set():
            report = folder / "report.jsonl"
            if report.exists() and report.stat().st_size:
                os.kill(max(_marked_processes(str(folder))), signal.SIGKILL)
                return
            time.sleep(0.05)

    thread = threading.Thread(target=kill_a_rank)
    thread.start()
    attempt = run(spec_of(tmp_path, steps=400), "dp=4 bucket=2", folder)
    is_over.set()
    thread.join()
    assert attempt.verdict.status is Status.CRASHED
    assert _marked_processes(str(folder)) == []


def test_a_batch_that_cannot_be_split_is_one_clear_error(tmp_path):
    attempt = run(spec_of(tmp_path), "dp=16 bucket=2", tmp_path / "a")
    assert attempt.verdict.status is Status.CRASHED
    assert "batch size: expected a multiple of dp x grad_accum = 16 x 1, got 8" in (
        attempt.verdict.reason
    )
