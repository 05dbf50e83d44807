import json
import math

import numpy as np
import pytest

from parabolt.frameworks.log_format import LOG_FORMATS, LogFormat, log_format
from parabolt.frameworks.measurements import Measurements, ReportError
from parabolt.instances.catalogue import load_instance
from parabolt.trials.measurements import ReportReader, Statistics


def measured(steps):
    found = Measurements()
    for step, seconds in enumerate(steps):
        found.add_step(step, seconds)
    return found


def test_statistics_of_the_timed_steps_only():
    found = measured([9.0, 0.5, 0.4, 0.25])
    found.add_memory(1, 3.0)
    found.add_memory(0, 2.0)
    found.add_memory(0, 1.0)
    statistics = Statistics.of(found, n_warmup=1, n_timed=3)
    assert statistics.step_times_s == (0.5, 0.4, 0.25)
    assert statistics.throughput == pytest.approx(3 / 1.15)
    assert statistics.throughput_std == pytest.approx(np.std([2.0, 2.5, 4.0], ddof=1))
    assert statistics.peak_memory_per_gpu_gb == (2.0, 3.0)
    assert statistics.peak_memory_gb == 3.0


def test_steps_beyond_the_timed_ones_do_not_count():
    assert Statistics.of(measured([1, 1, 2, 8]), n_warmup=1, n_timed=2).throughput == 1 / 1.5


def test_one_timed_step_has_no_spread_and_no_memory_is_nan():
    statistics = Statistics.of(measured([1.0, 2.0]), n_warmup=1, n_timed=1)
    assert math.isnan(statistics.throughput_std)
    assert math.isnan(statistics.peak_memory_gb)


def test_too_few_steps_say_so():
    with pytest.raises(ReportError, match=r"too few steps: expected 2 .* 5 timed.*got 4"):
        Statistics.of(measured([1.0] * 4), n_warmup=2, n_timed=5)


def test_a_missing_step_says_so():
    found = Measurements()
    for step in (1, 2, 4):
        found.add_step(step, 1.0)
    with pytest.raises(ReportError, match="step 3 was not reported, though step 4 was"):
        Statistics.of(found, n_warmup=0, n_timed=1)


def test_the_slowest_rank_counts():
    found = Measurements()
    found.add_step(0, 1.0, rank=0)
    found.add_step(0, 1.5, rank=3)
    assert found.step_times_s == {0: 1.5}


def test_a_step_reported_twice_is_a_restart():
    found = measured([1.0])
    with pytest.raises(ReportError, match="rank 0 reported step 0 twice"):
        found.add_step(0, 1.0)


def test_a_report_is_read_as_it_grows(tmp_path):
    path, found = tmp_path / "report.jsonl", Measurements()
    reader = ReportReader(path, found)
    reader.read()
    path.write_text('{"step": 0, "seconds": 0.5}\n{"step": 1, "sec')
    reader.read()
    assert found.step_times_s == {0: 0.5}
    with path.open("a") as file:
        file.write('onds": 0.25}\n\n{"rank": 2, "peak_memory_gb": 61, "loss": 3}\n')
    reader.read()
    assert found.step_times_s == {0: 0.5, 1: 0.25}
    assert found.peak_memory_gb == {2: 61.0}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("step 1 took 3 s", "line 2: expected JSON, got 'step 1 took 3 s'"),
        ("[1, 2]", "expected a JSON object"),
        ('{"loss": 1}', "expected step and seconds, or rank and peak_memory_gb"),
        ('{"step": 1.5, "seconds": 1}', "expected a whole step and its seconds"),
        ('{"step": 1, "seconds": "1"}', "expected a whole step and its seconds"),
        ('{"step": 1, "seconds": -1}', "step 1: expected positive seconds, got -1"),
        ('{"step": 1, "seconds": NaN}', "got nan"),
        ('{"rank": 1, "peak_memory_gb": null}', "expected a number for peak_memory_gb"),
        ('{"rank": true, "peak_memory_gb": 1}', "expected step and seconds, or rank"),
    ],
)
def test_an_unreadable_report_says_where(tmp_path, line, message):
    path = tmp_path / "report.jsonl"
    path.write_text(f'{{"step": 0, "seconds": 1}}\n{line}\n')
    with pytest.raises(ReportError, match=message):
        ReportReader(path, Measurements()).read()


def test_the_documented_helper(tmp_path, monkeypatch):
    """The four lines of docs/tune.md, executed as they stand there."""
    from pathlib import Path

    text = (Path(__file__).parents[2] / "docs" / "tune.md").read_text(encoding="utf-8")
    code = text.split("```python\n")[1].split("```")[0]
    assert len([line for line in code.splitlines() if line.strip()]) == 4
    monkeypatch.setenv("PARABOLT_REPORT", str(tmp_path / "report.jsonl"))
    scope = {}
    exec(code, scope)
    scope["report"](step=0, seconds=0.5)
    scope["report"](rank=1, peak_memory_gb=2.5)
    found = Measurements()
    ReportReader(tmp_path / "report.jsonl", found).read()
    assert found.step_times_s == {0: 0.5}
    assert found.peak_memory_gb == {1: 2.5}


INSTANCE = load_instance("pco32")  # 32 GPUs, batch 512, sequences of 8192
LOGS = {
    "megatron": (
        [
            " [2025-05-05 10:00:00] iteration        1/      10 | consumed samples:          512 | "
            "elapsed time per iteration (ms): 2500.5 | learning rate: 1.0E-04 | lm loss: 1.1E+01 |",
            "[Rank 3] (after 1 iterations) memory (MB) | allocated: 100.5 | max allocated: 800.0 | "
            "reserved: 900.0 | max reserved: 1000.0",
            " iteration        2/      10 | elapsed time per iteration (ms): 2400.0 | loss: 1 |",
        ],
        {1: 2.5005, 2: 2.4},
        {3: 1000 * 2**20 / 1e9},
    ),
    "torchtitan": (
        [
            "\x1b[31m[rank0]:[titan] 10:00:00 - root - INFO - \x1b[36mstep:  1  \x1b[32mloss: "
            "12.2  \x1b[33mmemory: 30.50GiB(38.6%)  \x1b[34mtps: 65,536  \x1b[36mtflops: 80\x1b[0m",
            "step:  2  loss: 11.0  memory: 40.00GiB(50%)  tps: 131,072  tflops: 160  mfu: 16%",
        ],
        {1: 512 * 8192 / (65536 * 32), 2: 1.0},
        {0: 40 * 2**30 / 1e9},
    ),
    "deepspeed": (
        [
            "[2025-05-05 10:00:00,000] [INFO] [timer.py:260:stop] epoch=0/micro_step=4/"
            "global_step=1, RunningAvgSamplesPerSec=200.0, CurrSamplesPerSec=256.0, "
            "MemAllocated=5.0GB, MaxMemAllocated=20.0GB",
            "epoch=0/micro_step=8/global_step=2, RunningAvgSamplesPerSec=1, CurrSamplesPerSec=512, "
            "MemAllocated=5.0GB, MaxMemAllocated=21.0GB",
        ],
        {1: 2.0, 2: 1.0},
        {0: 21 * 2**30 / 1e9},
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_built_in_formats(name):
    lines, steps, memory = LOGS[name]
    found = Measurements()
    log_format(name).read(["something else", *lines], 0, INSTANCE, found)
    assert found.step_times_s == pytest.approx(steps)
    assert found.peak_memory_gb == pytest.approx(memory)
    assert set(LOGS) == set(LOG_FORMATS)


def test_a_format_of_ones_own():
    mine = LogFormat((r"it (?P<step>\d+): (?P<milliseconds>[\d.]+)ms", r"mem=(?P<memory_gb>\S+)"))
    found = Measurements()
    mine.read(["it 7: 20.5ms mem=3.25"], 2, INSTANCE, found)
    assert found.step_times_s == {7: 0.0205}
    assert found.peak_memory_gb == {2: 3.25}
    with pytest.raises(ReportError, match="expected numbers in the log"):
        mine.read(["mem=lots"], 0, INSTANCE, found)


def test_json_of_any_kind_never_breaks_the_reader(tmp_path):
    for text in ("null", "3", '"x"', '{"step": {}}', '{"rank": []}', json.dumps({"seconds": 1})):
        path = tmp_path / "report.jsonl"
        path.write_text(text + "\n")
        with pytest.raises(ReportError, match="unreadable report, line 1"):
            ReportReader(path, Measurements()).read()
