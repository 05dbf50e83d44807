"""Streams, steps and tracebacks in logs."""

import pytest

from parabolt.trials.endings.ending import Log
from parabolt.trials.endings.reported_steps import ReportedSteps
from parabolt.trials.endings.streams import plain, steps_in, streams_of


def only_stream(text, rank=None):
    (stream,) = streams_of([Log(rank, text)])
    return stream


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ERROR 06-09 06:57:48 [executor.py:581]   File 'x'", "  File 'x'"),
        ("[launch.py:434:sigkill_handler] ValueError: x", "ValueError: x"),
        ("root - INFO - step: 3", "step: 3"),
        ("ERROR:root:ValueError: x", "ValueError: x"),
        ("ERROR    | app.main:run:121 - ValueError: x", "ValueError: x"),
        ("  | ValueError: x", "ValueError: x"),
        ("    loss.backward()", "    loss.backward()"),
        (
            "torch.OutOfMemoryError: CUDA out of memory",
            "torch.OutOfMemoryError: CUDA out of memory",
        ),
    ],
)
def test_plain(text, said):
    assert plain(text) == said


@pytest.mark.parametrize(
    ("line", "step"),
    [
        (
            " iteration        3/     100 | elapsed time per iteration (ms): 910.1 |",
            ("iteration", 3),
        ),
        ("step:  7  loss:  9.1  memory: 20.1GiB  tps: 1,310", ("step", 7)),
        ("step=12, skipped=0, lr=[0.001]", ("step", 12)),
        ("[Rank 0] steps: 5 loss: 9.1 iter time (s): 0.3", ("step", 5)),
        ("Training epoch 0, iteration 3/99 | lr: 0.1 | global_step: 4", ("iteration", 3)),
        ("epoch=0, global_step=8, RunningAvgSamplesPerSec=3.1, time=1", ("global_step", 8)),
        ("epoch 001:     12 / 100 loss=9.1, ppl=3", ("fairseq", 12)),
        ("  3%|3         | 3/100 [00:10<05:30,  3.40s/it]", ("bar of 100", 3)),
        ("Epoch 0:  12%|#  | 12/100 [00:10<05:30, 1.1it/s, v_num=1]", ("bar of 100", 12)),
        ("step 6 done", ("step", 6)),
        ("[batch=3/100]: loss 9.1", ("batch", 3)),
    ],
)
def test_steps(line, step):
    assert [(s.series, s.number) for s in steps_in(only_stream(line).lines)] == [step]


@pytest.mark.parametrize(
    "line",
    [
        "saving a checkpoint at step 3",
        "resuming from iteration 0 of /ckpt",
        "version 3.10.2 of step",
        "the first step takes longer",
        "loaded 4/4 shards",
    ],
)
def test_no_steps(line):
    assert list(steps_in(only_stream(line).lines)) == []


def test_ranks_of_one_log_are_streams_of_their_own():
    text = "0: a\n1: [rank9]: b\nc\n[rank9]: d\n"
    streams = streams_of([Log(None, text), Log(4, "[rank9]: e")])
    assert [(s.rank, [line.text for line in s.lines]) for s in streams] == [
        (0, ["a"]), (9, ["b", "d"]), (None, ["c"]), (4, ["e"]),
    ]  # fmt: skip
    assert [line.order for s in streams for line in s.lines] == [0, 1, 3, 2, 4]


TRACEBACK = """
before
Traceback (most recent call last):
  File "a.py", line 3, in f
    raise OutOfMemoryError("CUDA out of memory")
    ^^^^^^^^^^^^^^^^
ValueError: first
  and its second line

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "b.py", line 4, in g
    h()
Empty
[INFO] after
"""


def test_tracebacks():
    stream = only_stream(TRACEBACK)
    first, second = stream.raised
    assert (first.message, first.is_chained) == ("ValueError: first\n  and its second line", False)
    assert first.source == 'raise OutOfMemoryError("CUDA out of memory")'
    assert (second.message, second.is_chained, second.source) == ("Empty", True, "h()")
    assert [line.text for line in stream.lines] == [
        "before", "ValueError: first", "  and its second line", "Empty", "[INFO] after",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "announcement", ["Exception in thread Thread-4 (f):", "Exception ignored in: <function d>"]
)
def test_tracebacks_in_passing(announcement):
    text = f'{announcement}\nTraceback (most recent call last):\n  File "a.py", line 1\nKeyError: 1'
    (raised,) = only_stream(text).raised
    assert raised.is_passing
    (raised,) = only_stream(text.replace(announcement, "so it goes")).raised
    assert not raised.is_passing


def test_a_bar_in_the_line_of_a_traceback_still_counts():
    text = "2/9 [00:10<00:30]Traceback (most recent call last):\n  File 'x'\nKeyError: 1"
    assert [s.number for s in steps_in(only_stream(text).lines)] == [2]


@pytest.mark.parametrize(
    "text", ["Traceback (most recent call last):", 'Traceback (most recent call last):\n  File "x"']
)
def test_a_log_may_be_cut_off_anywhere_in_a_traceback(text):
    assert only_stream(text).raised == ()
    assert [line.text for line in only_stream('a\n  File "x.py", line 1, in f').lines] == ["a"]


def past(text, at, *, rank=None, by_anyone=False):
    """Whether line `at` of a log is gone past."""
    lines = sorted(
        (x for s in streams_of([Log(rank, text)]) for x in s.lines), key=lambda x: x.order
    )
    return ReportedSteps(steps_in(lines)).goes_past(lines[at], by_anyone=by_anyone)


def test_a_line_is_gone_past_by_a_higher_step_only():
    assert past("step 1 loss 1\nx\nstep 2 loss 1", 1)
    assert past("x\nstep 0 loss 1", 0)
    assert not past("step 1 loss 1\nx", 1)
    assert not past("step 2 loss 1\nx\nstep 2 loss 1\nstep 1 loss 1", 1)
    assert not past("2/9 [00:10<\nx\n2/9 [00:12<", 1)
    assert not past("x\n0/9 [00:00<", 0)
    assert past("x\n1/9 [00:00<", 0)
    assert past("2/9 [00:10<\nx\n1/8 [00:01<", 1), "another bar has begun"


def test_a_line_is_gone_past_by_its_own_rank_only():
    text = "[rank1]: x\n[rank0]: step 2 loss 1\nstep 3 loss 1"
    assert not past(text, 0)
    assert past(text, 0, by_anyone=True)
    assert not past("[rank1]: x\n[rank0]: step 2 loss 1", 0, by_anyone=True)
    assert not past("x\n[rank0]: step 2 loss 1", 0)
    assert past("x\n[rank0]: step 2 loss 1", 0, by_anyone=True)
