import re

from parabolt.analysis.trial_report import write_trial_report
from parabolt.outcome import Outcome, Status
from parabolt.space.configuration import Configuration
from parabolt.trials import records
from parabolt.trials.attempt import Attempt
from parabolt.trials.endings.verdict import Verdict
from parabolt.trials.journal import Journal


def test_a_report_says_what_the_journal_says(tmp_path):
    outcomes = [
        (Outcome(Status.CRASHED, wall_time_s=9.0), "rank 1: ValueError: <b>"),
        (Outcome(Status.OK, 1.25, 40.0, -0.5, 36.0), ""),
        (Outcome(Status.OK, 2.5, 60.0, -0.25, 36.0), ""),
        (Outcome(Status.STOPPED, 0.5, wall_time_s=18.0), "could not beat the best one any more"),
    ]
    about = {"purpose": "tune", "instance": "pco16", "n_gpus": 16, "memory_gib": 80}
    with Journal(tmp_path / "journal.jsonl") as journal:
        journal.append(records.created({}, about))
        for number, (outcome, reason) in enumerate(outcomes):
            journal.append(records.asked(number, Configuration(dp=16, bucket=64 << number)))
            journal.append(records.launched(number, f"trials/{number}"))
            attempt = Attempt(Verdict(outcome.status, reason), outcome, saved_s=4.5)
            journal.append(records.ended(number, attempt, is_final=True))
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
        journal.append(records.created({}, {"purpose": "sweep", "instance": "x", "n_gpus": 1}))
    page = write_trial_report(tmp_path, tmp_path).read_text(encoding="utf-8")
    assert "Sweep on x" in page
    assert "No configuration finished" in page
