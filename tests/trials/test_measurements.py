import json
import math

import numpy as np
import pytest

from parabolt.frameworks.measurements import Measurements, ReportError
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
    assert statistics.peak_memory_per_gpu_gib == (2.0, 3.0)
    assert statistics.peak_memory_gib == 3.0


def test_steps_beyond_the_timed_ones_do_not_count():
    assert Statistics.of(measured([1, 1, 2, 8]), n_warmup=1, n_timed=2).throughput == 1 / 1.5


def test_one_timed_step_has_no_spread_and_no_memory_is_nan():
    statistics = Statistics.of(measured([1.0, 2.0]), n_warmup=1, n_timed=1)
    assert math.isnan(statistics.throughput_std)
    assert math.isnan(statistics.peak_memory_gib)


def test_too_few_steps_say_so():
    with pytest.raises(ReportError, match=r"too few steps: expected 2 .* 5 timed.*got 4"):
        Statistics.of(measured([1.0] * 4), n_warmup=2, n_timed=5)


@pytest.mark.parametrize(
    ("seconds", "can_be"), [(4e-9, True), (3e-9, False), (3e8, True), (4e8, False)]
)
def test_step_times_have_bounds(seconds, can_be):
    """Of the throughput's reciprocals nothing overflows, and no step takes ten years."""
    times = measured([1.0, seconds])
    if can_be:
        assert Statistics.of(times, n_warmup=0, n_timed=2).step_times_s == (1.0, seconds)
    else:
        with pytest.raises(ReportError, match=r"step times of .* s cannot be"):
            Statistics.of(times, n_warmup=0, n_timed=2)


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
        file.write('onds": 0.25}\n\n{"rank": 2, "peak_memory_gib": 61, "loss": 3}\n')
        file.write('{"peak_memory_gib": 4}\n{"rank": 1, "peak_memory_gb": 2}\n')
    reader.read()
    assert found.step_times_s == {0: 0.5, 1: 0.25}
    assert found.peak_memory_gib == {2: 61.0, 0: 4.0, 1: pytest.approx(2e9 / 2**30)}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("step 1 took 3 s", "line 2: expected JSON, got 'step 1 took 3 s'"),
        ("[1, 2]", "expected a JSON object"),
        ('{"loss": 1}', "expected step and seconds, or rank and peak_memory_gib"),
        ('{"step": 1.5, "seconds": 1}', "expected a whole step and its seconds"),
        ('{"step": 1, "seconds": "1"}', "expected a whole step and its seconds"),
        ('{"step": 1, "seconds": -1}', "step 1: expected positive seconds, got -1"),
        ('{"step": 1, "seconds": NaN}', "got nan"),
        ('{"rank": 1, "peak_memory_gib": null}', "expected a number for peak_memory_gib"),
        ('{"rank": true, "peak_memory_gib": 1}', "expected step and seconds, or rank"),
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
    scope["report"](rank=1, peak_memory_gib=2.5)
    found = Measurements()
    ReportReader(tmp_path / "report.jsonl", found).read()
    assert found.step_times_s == {0: 0.5}
    assert found.peak_memory_gib == {1: 2.5}


def test_json_of_any_kind_never_breaks_the_reader(tmp_path):
    for text in ("null", "3", '"x"', '{"step": {}}', '{"rank": []}', json.dumps({"seconds": 1})):
        path = tmp_path / "report.jsonl"
        path.write_text(text + "\n")
        with pytest.raises(ReportError, match="unreadable report, line 1"):
            ReportReader(path, Measurements()).read()
