"""Local processes: one pipe to each, so that it is always known which task a process has."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import deque
from multiprocessing.connection import Pipe, wait
from typing import TYPE_CHECKING, Any

import cloudpickle
import joblib

from parabolt.errors import OptionError, StudyError
from parabolt.experiments.executors.executor import (
    MAX_ATTEMPTS,
    NO_LIMITS,
    Limits,
    TaskError,
    TaskResult,
)
from parabolt.experiments.executors.worker import READY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

#: One BLAS thread per process: the matrices are small, and the processes fill the cores.
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
#: Seconds between looks at all processes, also at those that say nothing.
_LOOK_EVERY_S = 1.0
#: What a worker runs. The module search path comes first, as ours may have been extended.
_PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from parabolt.experiments.executors.worker import serve
serve(int(sys.argv[2]), int(sys.argv[3]))
"""


class LocalExecutor:
    """Processes on this machine.

    Args:
        n_jobs: How many; -1 for one per core.
    """

    def __init__(self, n_jobs: int = -1) -> None:
        if n_jobs != -1 and n_jobs < 1:
            raise OptionError(f"jobs: expected -1 or a positive whole number, got {n_jobs}")
        self.n_workers = joblib.cpu_count() if n_jobs == -1 else n_jobs

    def map(
        self, function: Callable[[Any], Any], items: Sequence[Any], limits: Limits = NO_LIMITS
    ) -> Iterator[TaskResult]:
        """See `Executor.map`.

        A process whose task failed is replaced, so that the next one meets a fresh process.
        """
        first_message = cloudpickle.dumps((function, limits.memory_gib))
        waiting = deque((index, 1) for index in range(len(items)))
        workers: list[_Worker] = []
        try:
            while waiting or any(worker.is_busy for worker in workers):
                n_wanted = len(waiting) + sum(worker.is_busy for worker in workers)
                while len(workers) < min(self.n_workers, n_wanted):
                    workers.append(_Worker(first_message))
                for worker in workers:
                    if waiting and worker.is_idle:
                        index, attempt = waiting.popleft()
                        worker.give(index, attempt, items[index], limits)
                for worker in _wait(workers):
                    result = worker.take(limits)
                    if worker.is_over:
                        workers.remove(worker)
                        worker.kill()
                    if result is None:
                        continue
                    if worker.died and result.n_attempts < MAX_ATTEMPTS:
                        waiting.appendleft((result.index, result.n_attempts + 1))
                    else:
                        yield result
        finally:
            for worker in workers:
                worker.kill()


def in_own_process(function: Callable[[Any], Any], limits: Limits, item: Any) -> Any:
    """Calls a function within limits, in a process of its own.

    Raises:
        TaskError: If it fails, or goes beyond a limit.
    """
    (result,) = LocalExecutor(1).map(function, [item], limits)
    if result.error:
        raise TaskError(result.error, result.details)
    return result.value


class _Worker:
    """A process, the pipe to it, and the task that it has."""

    def __init__(self, first_message: bytes) -> None:
        self.pipe, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - ourselves
                [sys.executable, "-c", _PROGRAM, json.dumps(sys.path), str(theirs.fileno()),
                 str(os.getpid())],
                pass_fds=[theirs.fileno()], env=os.environ | _ONE_THREAD,
                stdin=subprocess.DEVNULL,
                stdout=2,  # what an optimizer prints is no output of ours
                start_new_session=True,  # a terminal's Ctrl-C is ours to handle
            )  # fmt: skip
        self.is_over = self.died = False
        self._is_ready = False
        self._task: tuple[int, int] | None = None
        self.deadline = float("inf")
        with contextlib.suppress(BrokenPipeError):  # it is seen when the pipe is read
            self.pipe.send_bytes(first_message)

    @property
    def is_busy(self) -> bool:
        return self._task is not None

    @property
    def is_idle(self) -> bool:
        return self._is_ready and self._task is None

    def give(self, index: int, attempt: int, item: Any, limits: Limits) -> None:
        """Hands a task over."""
        self._task = (index, attempt)
        if limits.time_s is not None:
            self.deadline = time.monotonic() + limits.time_s
        with contextlib.suppress(BrokenPipeError):  # it is seen when the pipe is read
            self.pipe.send_bytes(cloudpickle.dumps(item))

    def take(self, limits: Limits) -> TaskResult | None:
        """What has come of the task; None if there was none, or it is not over."""
        try:
            # A process that the task started may hold the pipe open when the worker is dead.
            is_dead = self._process.poll() is not None
            message = self.pipe.recv_bytes() if self.pipe.poll() else b""
        except (EOFError, ConnectionResetError):
            return self._dead(limits)
        if is_dead and not message:
            return self._dead(limits)
        if message == READY:
            self._is_ready = True
            return None
        if self._task is None or (not message and time.monotonic() < self.deadline):
            return None
        index, attempt = self._task
        self._task, self.deadline = None, float("inf")
        if not message:
            self.is_over = True
            reason = f"ended: it took longer than run_time_limit_s = {limits.time_s:g}"
            return TaskResult(index, error=reason, n_attempts=attempt)
        value, error, details = cloudpickle.loads(message)
        self.is_over = bool(error)
        if error.startswith("MemoryError") and limits.memory_gib is not None:
            error += f"; run_memory_limit_gib = {limits.memory_gib:g}"
        return TaskResult(index, value, error, details, attempt)

    def kill(self) -> None:
        """Ends the process and what it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self.pipe.close()

    def _dead(self, limits: Limits) -> TaskResult | None:
        self.is_over = True
        status = self._process.wait()
        how = f"exit status {status}" if status >= 0 else _signal_name(-status)
        if not self._is_ready:
            raise StudyError(f"a worker process could not start ({how}); its output says why")
        if self._task is None:
            return None
        self.died = True
        reason = f"the worker process died ({how})"
        if limits.memory_gib is not None:
            reason += f"; run_memory_limit_gib = {limits.memory_gib:g}"
        (index, attempt), self._task = self._task, None
        return TaskResult(index, error=reason, n_attempts=attempt)


def _wait(workers: Sequence[_Worker]) -> Sequence[_Worker]:
    """The workers to look at: those that said something, and now and then all."""
    pipes: dict[Any, _Worker] = {worker.pipe: worker for worker in workers}
    soonest = min(worker.deadline for worker in workers) - time.monotonic()
    said = [pipes[pipe] for pipe in wait(list(pipes), min(_LOOK_EVERY_S, max(0.0, soonest)))]
    return said or workers


def _signal_name(number: int) -> str:
    name = signal.Signals(number).name
    return f"{name}, as when memory runs out" if number == signal.SIGKILL else name
