"""Tasks that die, hang, exit, or take too much memory: each fails alone, and nothing is lost."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from parabolt.experiments.executors import local
from parabolt.experiments.executors.executor import NO_LIMITS, Limits
from parabolt.experiments.executors.local import LocalExecutor, in_own_process


def results(function, items, limits=NO_LIMITS, n_jobs=2):
    found = list(LocalExecutor(n_jobs).map(function, items, limits))
    assert sorted(result.index for result in found) == list(range(len(items)))  # each once
    return {result.index: result for result in found}


def values(found):
    return {index: result.value for index, result in found.items() if not result.error}


def misbehave(item):
    """Ends in the way that the item names."""
    if item == "exit":
        sys.exit(3)
    if item == "interrupt":
        raise KeyboardInterrupt
    if item == "raise":
        raise RuntimeError("singular\nmatrix")
    if item == "die":
        os._exit(9)
    if item == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if item in ("sleep", "hang"):
        Path(os.environ["BEGUN"], item).touch()
    if item == "sleep":
        time.sleep(3600)
    if item == "hang":  # no other thread of the process gets a turn
        sys.setswitchinterval(1e9)
        while True:
            pass
    if item == "memory":
        return len(np.empty(2**28))  # 2 GiB, and none of it touched
    if item == "unpicklable":
        return threading.Lock()
    return item


# Pickled by value, so that workers need not import the tests.
misbehave.__module__ = "__main__"


def test_what_a_task_raises_is_its_own_failure():
    found = results(misbehave, ["a", "exit", "b", "interrupt", "raise", "unpicklable", "c"])
    assert values(found) == {0: "a", 2: "b", 6: "c"}
    assert found[1].error.startswith("SystemExit: 3 (")
    assert found[3].error.startswith("KeyboardInterrupt (")
    assert found[4].error.startswith("RuntimeError: singular matrix (")
    assert found[5].error.startswith("TypeError: cannot pickle")
    assert all(result.n_attempts == 1 for result in found.values())
    assert "Traceback" in found[4].details


def test_a_task_whose_process_dies_is_tried_again_and_no_other_is():
    found = results(misbehave, ["a", "die", "kill", "b"])
    assert values(found) == {0: "a", 3: "b"}
    assert (found[1].n_attempts, found[2].n_attempts) == (3, 3)
    assert found[1].error == "the worker process died (exit status 9)"
    assert found[2].error == "the worker process died (SIGKILL, as when memory runs out)"
    assert (found[0].n_attempts, found[3].n_attempts) == (1, 1)


class Clock:
    """Stands still but while a task hangs, so that no test depends on the load of the machine."""

    @staticmethod
    def monotonic():
        return 1000.0 * len(list(Path(os.environ["BEGUN"]).iterdir()))


@pytest.fixture
def clock(tmp_path, monkeypatch):
    monkeypatch.setenv("BEGUN", str(tmp_path))
    monkeypatch.setattr(local, "time", Clock)


def test_a_task_that_takes_too_long_is_ended_once(clock):
    limits = Limits(time_s=1.5)
    found = results(misbehave, ["sleep", "a", "hang", "b"], limits, n_jobs=1)
    assert values(found) == {1: "a", 3: "b"}
    for index in (0, 2):
        assert found[index].error == "ended: it took longer than run_time_limit_s = 1.5"
        assert found[index].n_attempts == 1


def test_a_task_that_takes_too_much_memory_fails():
    found = results(misbehave, ["memory", "a"], Limits(memory_gib=1.5), n_jobs=1)
    assert values(found) == {1: "a"}
    assert found[0].error.startswith("MemoryError: Unable to allocate 2.00 GiB")
    assert found[0].error.endswith("; run_memory_limit_gib = 1.5")
    assert values(results(misbehave, ["memory"])) == {0: 2**28}


def in_worker(item):
    local.time = Clock
    return in_own_process(misbehave, Limits(time_s=1.0), item)


in_worker.__module__ = Clock.__module__ = "__main__"


def test_limits_are_kept_in_a_process_of_the_tasks_own(clock):
    found = results(in_worker, ["a", "sleep", "exit"], n_jobs=1)
    assert values(found) == {0: "a"}
    assert found[1].error == "ended: it took longer than run_time_limit_s = 1"
    assert found[2].error.startswith("SystemExit: 3")
    assert "Traceback" in found[2].details


def first_death(item):
    number, mark = item
    if number == 1 and not mark.exists():
        mark.with_suffix(".new").write_text(str(os.getpid()))
        mark.with_suffix(".new").rename(mark)
        os._exit(9)
    while not mark.exists():
        time.sleep(0.01)
    return number


first_death.__module__ = "__main__"


def test_a_death_while_a_result_is_stored_loses_no_task(tmp_path):
    """What the consumer does between two results must not matter, however long it takes."""
    mark = tmp_path / "died"
    seen = []
    for result in LocalExecutor(2).map(first_death, [(i, mark) for i in range(6)]):
        seen.append(result.index)
        while len(seen) == 1 and is_running(int(mark.read_text())):
            time.sleep(0.01)  # the first result is held until the other worker is dead
    assert sorted(seen) == list(range(6))


PROGRAM = """
import sys, time
from pathlib import Path
from parabolt.experiments.executors.local import LocalExecutor

def work(item):
    import os, sys, time
    Path(FOLDER, str(os.getpid())).touch()
    if item:
        sys.setswitchinterval(1e9)
        while True:
            pass
    time.sleep(3600)

FOLDER = sys.argv[1]
list(LocalExecutor(2).map(work, [0, 1]))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_worker_outlives_its_parent(tmp_path, number):
    parent = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], stderr=subprocess.DEVNULL
    )
    while len(list(tmp_path.iterdir())) < 2:
        assert parent.poll() is None
        time.sleep(0.05)
    workers = [int(path.name) for path in tmp_path.iterdir()]
    parent.send_signal(number)
    assert parent.wait() != 0
    while any(is_running(pid) for pid in workers):  # if one stays, the limit of every test ends it
        time.sleep(0.05)


def is_running(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_what_a_task_prints_is_no_output_of_the_study(capfd):
    results(print, ["from the task"], n_jobs=1)
    output, errors = capfd.readouterr()
    assert output == ""
    assert "from the task" in errors
