"""The corpus of endings, and what decides between them."""

import re
import tomllib
from pathlib import Path

import pytest

from parabolt.outcome import Status
from parabolt.trials.endings import messages
from parabolt.trials.endings.ending import Ending, Log, rank_of, read_logs
from parabolt.trials.endings.failures import Account
from parabolt.trials.endings.memory import Weight, weight_of
from parabolt.trials.endings.streams import plain
from parabolt.trials.endings.verdict import decide

FOLDER = Path(__file__).parent / "corpus"
ENDINGS = [
    ending
    for path in sorted(FOLDER.glob("*.toml"))
    for ending in tomllib.loads(path.read_text(encoding="utf-8"))["ending"]
]


def ending_of(ending):
    logs = tuple(
        Log(None if name == "launcher" else int(name.removeprefix("rank")), text)
        for name, text in ending["logs"].items()
    )
    facts = {k: v for k, v in ending.items() if k not in ("name", "expected", "reason", "logs")}
    return Ending(logs=logs, **facts)


def test_the_corpus_is_large_and_its_names_are_distinct():
    assert len({ending["name"] for ending in ENDINGS}) == len(ENDINGS) >= 150
    assert {ending["expected"] for ending in ENDINGS} == {*Status} - {Status.FAILED}


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending["name"])
def test_ending(ending):
    verdict = decide(ending_of(ending))
    assert verdict.status == ending["expected"], verdict.reason
    assert re.search(ending["reason"], verdict.reason), verdict.reason


@pytest.mark.parametrize(
    "ending", [e for e in ENDINGS if len(e["logs"]) > 1], ids=lambda ending: ending["name"]
)
def test_the_status_does_not_depend_on_the_order_of_the_logs(ending):
    found = ending_of(ending)
    turned = Ending(**{**found.__dict__, "logs": found.logs[::-1]})
    assert decide(turned).status == decide(found).status


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending["name"])
def test_shared_log_with_prefixes_gives_the_same_status(ending):
    """All ranks in one file, each line with torchrun's prefix, says the same as a file each."""
    found = ending_of(ending)
    if ending.get("hit_time_limit") and ending["expected"] == "crashed":
        return  # covered below: the rank is what tells the error from one in passing
    text = "\n".join(
        line if log.rank is None else f"[rank{log.rank}]: {line}"
        for log in found.logs
        for line in log.text.splitlines()
    )
    shared = Ending(**{**found.__dict__, "logs": (Log(None, text),)})
    assert decide(shared).status == ending["expected"]


@pytest.mark.parametrize(
    ("path", "rank"),
    [
        ("output.log", None),
        ("rank-3.log", 3),
        ("rank12.out", 12),
        ("none_abc/attempt_0/5/stderr.log", 5),
    ],
)
def test_rank_of_a_log(tmp_path, path, rank):
    assert rank_of(tmp_path / path, tmp_path) == rank


def test_a_long_log_keeps_both_ends(tmp_path):
    filler = b"step\n" * 400_000
    (tmp_path / "rank-1.log").write_bytes(b"first\n" + filler + b"CUDA out of memory\n")
    (log,) = read_logs(tmp_path)
    assert log.rank == 1
    assert log.text.startswith("first\n")
    assert len(log.text) < 1_100_000
    assert decide(Ending(exit_code=1, logs=(log,))).status is Status.OOM


def test_bytes_that_are_no_text_are_read(tmp_path):
    (tmp_path / "output.log").write_bytes(b"\xff\xfe\nValueError: x\n")
    verdict = decide(Ending(exit_code=1, logs=read_logs(tmp_path)))
    assert verdict.reason == "ValueError: x"


def test_a_line_that_anything_recognises_is_suspect():
    """The list of words that lets other lines be passed over lacks none."""
    for ending in ENDINGS:
        for line in Account(ending_of(ending).logs).lines:
            recognised = (
                messages.is_exception(plain(line.text))
                or messages.is_complaint(line.text)
                or messages.is_hardware(line.text)
                or messages.is_network(line.text)
                or messages.is_usage(line.text)
                or messages.is_lost_peer(line.text)
                or messages.is_collective_timeout(line.text)
                or messages.is_time_limit(line.text)
                or weight_of(line.text) is not Weight.NONE
            )
            assert line.is_suspect or not recognised, line.text


@pytest.mark.parametrize(("n", "shown"), [(288, "x" * 288), (289, "x" * 285 + "...")])
def test_a_quotation_has_at_most_300_characters(n, shown):
    logs = (Log(3, f"ValueError: {'x' * n}"),)
    assert decide(Ending(exit_code=1, logs=logs)).reason == f"rank 3: ValueError: {shown}"
