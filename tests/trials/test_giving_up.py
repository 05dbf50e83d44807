"""When a session gives up, by hand-made rows of endings."""

import pytest

from parabolt.journal.history import Trial
from parabolt.outcome import Outcome, Status
from parabolt.space.configuration import Configuration
from parabolt.trials.giving_up import GivingUp


def reasons(*endings):
    """What is said after each ending: (number of a configuration, status[, reason])."""
    watch = GivingUp()
    said = []
    for number, (n, status, *why) in enumerate(endings):
        trial = Trial(number, Configuration(dp=2, bucket=2**n), ending=Outcome(Status(status)))
        trial.reason = why[0] if why else f"reason {number}"
        said.append(watch.add(trial))
    return said, [trial.number for trial in watch.trials]


def test_five_configurations_that_crash():
    said, at_fault = reasons(*((n, "crashed") for n in range(5)))
    assert said[:4] == [None] * 4
    assert "the last 5 configurations crashed" in said[4]
    assert said[4].endswith("the last one: reason 4")
    assert at_fault == [0, 1, 2, 3, 4]


def test_one_configuration_that_crashes_five_times():
    assert reasons(*[(4, "crashed")] * 8)[0] == [None] * 8


@pytest.mark.parametrize("status", ["ok", "oom", "timeout", "stopped"])
def test_an_outcome_ends_the_row(status):
    crashes = [(n, "crashed") for n in range(4)]
    said, at_fault = reasons(*crashes, (3, status), (16, "crashed"))
    assert said == [None] * 6
    assert at_fault == [5]


@pytest.mark.parametrize("status", ["node", "invalid"])
def test_what_says_nothing_neither_adds_nor_ends(status):
    crashes = [(n, "crashed") for n in range(4)]
    said, _ = reasons(*crashes, (3, status), (16, "crashed"))
    assert said[:5] == [None] * 5
    assert "the last 5 configurations crashed" in said[5]


def test_ten_rejections_for_one_reason():
    said, _ = reasons(*[(n, "invalid", "no --tp") for n in range(1, 11)])
    assert said[:9] == [None] * 9
    assert said[9].endswith("its command is at fault rather than they: no --tp")
    assert reasons(*[(n, "invalid", f"tp {n}") for n in range(1, 30)])[0] == [None] * 29


def test_three_trials_that_lose_their_place():
    said, _ = reasons((1, "node"), (2, "node"), (4, "node", "Xid 79"))
    assert said[:2] == [None, None]
    assert said[2].endswith("the last one: Xid 79")
    assert reasons((1, "node"), (2, "node"), (3, "ok"), (4, "node"))[0] == [None] * 4
