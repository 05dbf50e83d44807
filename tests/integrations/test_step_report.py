import json

import pytest

from parabolt.integrations.step_report import StepReport


def test_a_step_lasts_from_end_to_end_without_pauses(tmp_path, monkeypatch):
    path = tmp_path / "report.jsonl"
    monkeypatch.setenv("PARABOLT_REPORT", str(path))
    times = iter([0.0, 10.0, 13.0, 14.5, 20.0, 21.0])
    report = StepReport(clock=lambda: next(times))
    report.start()
    report.end_step(1)
    report.end_step(2)
    report.start()  # after an evaluation
    report.end_step(3)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert records == [
        {"step": 1, "seconds": 3.0},
        {"step": 2, "seconds": 1.5},
        {"step": 3, "seconds": 1.0},
    ]


@pytest.mark.parametrize("value", [None, ""])
def test_outside_a_trial_nothing_is_written(tmp_path, monkeypatch, value):
    if value is None:
        monkeypatch.delenv("PARABOLT_REPORT", raising=False)
    else:
        monkeypatch.setenv("PARABOLT_REPORT", value)
    monkeypatch.chdir(tmp_path)
    report = StepReport()
    report.start()
    report.end_step(1)
    report.end_training(0)
    assert not list(tmp_path.iterdir())
