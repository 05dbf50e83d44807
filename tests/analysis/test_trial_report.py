import json
import re

import pytest

from parabolt.analysis.trial_report import write_trial_report
from parabolt.errors import JournalError
from parabolt.journal import records
from parabolt.journal.about import About
from parabolt.journal.file import Journal
from parabolt.outcome import Outcome, Status
from parabolt.space.configuration import Configuration


def test_a_report_says_what_the_journal_says(tmp_path):
    outcomes = [
        (Outcome(Status.CRASHED, wall_time_s=9.0), "rank 1: ValueError: <b>"),
        (Outcome(Status.OK, 1.25, 40.0, -0.5, 36.0), ""),
        (Outcome(Status.OK, 2.5, 60.0, -0.25, 36.0), ""),
        (Outcome(Status.STOPPED, 0.5, wall_time_s=18.0), "could not beat the best one any more"),
    ]
    about = About("tune", "pco16", n_gpus=16, memory_gib=80)
    with Journal(tmp_path / "journal.jsonl") as journal:
        journal.append(records.created({}, about))
        for number, (outcome, reason) in enumerate(outcomes):
            journal.append(records.asked(number, Configuration(dp=16, bucket=64 << number)))
            journal.append(records.launched(number, f"trials/{number}"))
            journal.append(
                records.ended(
                    number, outcome, reason=reason, saved_s=4.5, statistics=None, is_final=True
                )
            )
        journal.append(records.asked(4, Configuration(dp=16, bucket=128)))
    folder = tmp_path / "trials/2"
    folder.mkdir(parents=True)
    (folder / "command.json").write_text('["train", "a b", "--dp=16"]')
    page = write_trial_report(tmp_path, tmp_path / "out").read_text(encoding="utf-8")
    assert "Search on pco16" in page
    assert "2.5 iterations/s, 60 of 80 GiB, measured in trial 2" in page
    assert "train &#x27;a b&#x27; --dp=16" in page
    assert "4 trials, 0.440 GPU-hours spent, about 0.080 saved" in page
    assert "rank 1: ValueError: &lt;b&gt;" in page
    rows = re.findall(r"<tr(?: class=\"best\")?><td>(\d)</td>.*?</tr>", page)
    assert rows == ["0", "1", "2", "3"]
    best = re.search(r'<tr class="best">(.*?)</tr>', page).group(1)
    assert "bucket256" in best


def test_a_journal_without_a_finished_trial(tmp_path):
    with Journal(tmp_path / "journal.jsonl") as journal:
        journal.append(records.created({}, About("sweep", "x")))
    page = write_trial_report(tmp_path, tmp_path).read_text(encoding="utf-8")
    assert "Sweep on x" in page
    assert "No configuration finished" in page


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("memory_gib", "80", "record 1 can't be read: .*memory_gib: expected int, got '80'"),
        ("n_gpus", None, "n_gpus: expected int, got None"),
        ("n_gpus", True, "n_gpus: expected int, got True"),
        ("purpose", 1, "purpose: expected str, got 1"),
        ("command", "x", "command: expected list, got 'x'"),
    ],
)
def test_a_damaged_journal_is_one_line(tmp_path, key, value, message):
    record = records.created({}, About("tune", "x"))
    record["about"][key] = value
    (tmp_path / "journal.jsonl").write_text(json.dumps(record) + "\n")
    with pytest.raises(JournalError, match=message):
        write_trial_report(tmp_path, tmp_path)


@pytest.mark.parametrize("text", ["{", "3", "", "\xff"])
def test_a_damaged_command_is_left_out(tmp_path, text):
    outcome = Outcome(Status.OK, 2.5, 60.0, -0.25, 36.0)
    with Journal(tmp_path / "journal.jsonl") as journal:
        journal.append(records.created({}, About("tune", "x")))
        journal.append(records.asked(0, Configuration(dp=16, bucket=64)))
        journal.append(records.launched(0, "trials/0"))
        journal.append(
            records.ended(0, outcome, reason="", saved_s=0.0, statistics=None, is_final=True)
        )
    (tmp_path / "trials/0").mkdir(parents=True)
    (tmp_path / "trials/0/command.json").write_bytes(text.encode("latin-1"))
    page = write_trial_report(tmp_path, tmp_path).read_text(encoding="utf-8")
    assert "2.5 iterations/s, 60 GiB, measured in trial 0" in page
    assert "launched by" not in page
