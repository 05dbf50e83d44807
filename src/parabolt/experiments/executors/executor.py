"""The contract of an executor."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from parabolt.errors import ParaboltError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

#: How often a task is tried whose worker dies under it.
MAX_ATTEMPTS = 3


@dataclass(frozen=True)
class Limits:
    """What a task may use; None for no limit.

    Attributes:
        time_s: Wall-clock seconds.
        memory_gib: Memory of its process in GiB.
    """

    time_s: float | None = None
    memory_gib: float | None = None

    def __bool__(self) -> bool:
        return self.time_s is not None or self.memory_gib is not None


NO_LIMITS = Limits()


@dataclass(frozen=True)
class TaskResult:
    """What became of a task.

    Attributes:
        index: Number of the task.
        value: What the function returned; None if it failed.
        error: Why it failed, in one line; empty if it did not.
        details: The traceback, where there is one.
        n_attempts: How often it was tried.
    """

    index: int
    value: Any = None
    error: str = ""
    details: str = ""
    n_attempts: int = 1


class Executor(Protocol):
    """Runs tasks somewhere and gives their results as they come."""

    #: Tasks that run at the same time.
    n_workers: int

    def map(
        self, function: Callable[[Any], Any], items: Sequence[Any], limits: Limits = NO_LIMITS
    ) -> Iterator[TaskResult]:
        """One result per item, in any order; an error in one task doesn't stop the others.

        A task whose worker dies is tried again, `MAX_ATTEMPTS` times in all. One that goes beyond
        a limit has failed. Closing the iterator ends all workers.
        """


class TaskError(Exception):
    """A task that failed elsewhere: its reason, and its traceback in `details`."""

    def __init__(self, reason: str, details: str) -> None:
        super().__init__(reason)
        self.details = details

    def __reduce__(self) -> tuple[object, ...]:
        return TaskError, (str(self), self.details)


def guarded(function: Callable[[Any], Any], item: Any) -> tuple[Any, str, str]:
    """Value, reason of failure and traceback of a call; runs in the worker, so that all can travel.

    Whatever is raised is a failure of this one task, `SystemExit` and `KeyboardInterrupt` too.
    """
    try:
        return function(item), "", ""
    except TaskError as error:
        return None, str(error), error.details
    except BaseException as error:  # noqa: BLE001 - whatever a run raises is told, not hidden
        return None, _reason(error), "".join(traceback.format_exception(error))


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, ParaboltError):
        return text
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    kind = "MemoryError" if isinstance(error, MemoryError) else type(error).__name__
    return f"{kind}{': ' if text else ''}{text}{place}"
