"""A process that computes tasks for a `LocalExecutor`, one after the other.

    receives: the function and the limit of memory, then one item at a time
    sends:    `READY` once it can compute, then what `guarded` gives for each item

It ends when it is told nothing more, and with the process that started it.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
import time
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle

from parabolt.experiments.executors.executor import guarded

READY = b"ready"

_GIB = 2**30
#: Option of Linux's `prctl`: the signal that a process gets when the one that started it ends.
_PR_SET_PDEATHSIG = 1


def serve(descriptor: int, parent: int) -> None:
    """Computes what comes through a pipe.

    Args:
        descriptor: File descriptor of this process's end of the pipe.
        parent: Process id of the one at the other end.
    """
    _end_with(parent)
    pipe = Connection(descriptor)
    function, memory_gib = cloudpickle.loads(pipe.recv_bytes())
    if memory_gib is not None:
        most = int(memory_gib * _GIB)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))

    def compute(item: bytes) -> Any:
        return function(cloudpickle.loads(item))

    def sendable(item: bytes) -> bytes:
        content: bytes = cloudpickle.dumps(guarded(compute, item))
        return content

    pipe.send_bytes(READY)
    while True:
        try:
            item = pipe.recv_bytes()
        except EOFError:
            return
        # A value that can't be pickled fails like any other.
        content, error, details = guarded(sendable, item)
        pipe.send_bytes(cloudpickle.dumps((None, error, details)) if error else content)


def _end_with(parent: int) -> None:
    """Lets this process end when `parent` does, whatever it is doing."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)
