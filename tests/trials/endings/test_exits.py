"""Exit codes, and the words in which launchers tell of them."""

import pytest

from parabolt.trials.endings.ending import Log
from parabolt.trials.endings.exits import (
    ProcessEnd,
    exit_in_words,
    exits_in,
    first_of,
    signal_of,
)
from parabolt.trials.endings.streams import streams_of


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (-9, "signal SIGKILL"),
        (137, "signal SIGKILL"),
        (247, "signal SIGKILL"),
        (-15, "signal SIGTERM"),
        (143, "signal SIGTERM"),
        (241, "signal SIGTERM"),
        (134, "signal SIGABRT"),
        (250, "signal SIGABRT"),
        (139, "signal SIGSEGV"),
        (245, "signal SIGSEGV"),
        (0, "exit code 0"),
        (1, "exit code 1"),
        (124, "exit code 124"),
        (128, "exit code 128"),
        (192, "signal SIGRTMAX"),
        (193, "exit code 193"),
        (255, "exit code 255"),
        (271, "exit code 271"),
    ],
)
def test_exit_in_words(code, text):
    assert exit_in_words(code) == text
    assert (signal_of(code) is None) == text.startswith("exit")


@pytest.mark.parametrize(
    ("line", "end", "words"),
    [
        (
            "failed (exitcode: -9) local_rank: 3 (pid: 4127) of binary: /opt/python",
            ProcessEnd(None, -9, local_rank=3),
            "local rank 3 ended with signal SIGKILL",
        ),
        (
            "['python', '-u', 'main.py', '--local_rank=7', '--x'] exits with return code = -11",
            ProcessEnd(None, -11, local_rank=7),
            "local rank 7 ended with signal SIGSEGV",
        ),
        (
            "['python', 'main.py'] exits with return code = 2",
            ProcessEnd(None, 2),
            "a process ended with exit code 2",
        ),
        ("Signal 9 (SIGKILL) received by PID 4127", ProcessEnd(None, -9), None),
        ("Command '['a']' returned non-zero exit status 3.", ProcessEnd(None, 3), None),
        ("Command '['a']' died with <Signals.SIGBUS: 7>.", ProcessEnd(None, -7), None),
        ("process 5 terminated with signal SIGKILL", ProcessEnd(5, -9), None),
        ("process 5 terminated with exit code 3", ProcessEnd(5, 3), None),
        ("DataLoader worker (pid 8) is killed by signal: Bus error.", ProcessEnd(None, -7), None),
        ("DataLoader worker (pid(s) 8, 9) exited unexpectedly", ProcessEnd(None, -9), None),
        ("srun: error: n1: task 4: Segmentation fault", ProcessEnd(4, -11), None),
        ("srun: error: n1: tasks 4-7: Exited with exit code 137", ProcessEnd(4, 137), None),
        ("srun: error: n1: task 4: Out Of Memory", ProcessEnd(4, -9), None),
        ("process rank 1 with PID 0 on node n exited on signal 6 (Aborted)", ProcessEnd(1, -6), ""),
        ("run.sh: line 7: 812 Killed                  python train.py", ProcessEnd(None, -9), None),
        ("Segmentation fault (core dumped)", ProcessEnd(None, -11), None),
        ("container exited with code 137", ProcessEnd(None, 137), None),
    ],
)
def test_how_a_process_ended(line, end, words):
    lines = streams_of([Log(None, line)])[0].lines
    assert exits_in(lines) == [end]
    assert not words or str(end) == words


@pytest.mark.parametrize(
    "line",
    [
        "Killed by the user's wish, said the operator",
        "the run was aborted before",
        "exit code 0 of the warm-up",
        "worker exited with code 1",
    ],
)
def test_no_end_of_a_process(line):
    assert exits_in(streams_of([Log(None, line)])[0].lines) == []


def test_the_root_cause_comes_first():
    text = """
failed (exitcode: 1) local_rank: 0 (pid: 1) of binary: python
Root Cause (first observed failure):
[0]:
  time      : 2025-04-12_10:11:02
  rank      : 6 (local_rank: 2)
  exitcode  : -11 (pid: 4127)
"""
    ends = exits_in(streams_of([Log(None, text)])[0].lines)
    assert ends == [ProcessEnd(None, 1, local_rank=0), ProcessEnd(6, -11, is_root=True)]
    assert first_of(ends) is ends[1]
    assert first_of(ends[:1]) is ends[0]
    assert first_of([]) is None
