"""The contract of an executor, and executors by address."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from parabolt.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

#: How often a task is tried whose worker dies under it.
MAX_ATTEMPTS = 3


@dataclass(frozen=True)
class Answer:
    """What became of a task.

    Attributes:
        index: Number of the task.
        result: What the function returned; None if it failed.
        error: Why it failed, with the traceback where there is one; empty if it did not.
        n_attempts: How often it was tried.
    """

    index: int
    result: Any = None
    error: str = ""
    n_attempts: int = 1


class Executor(Protocol):
    """Runs tasks somewhere and gives the answers as they come."""

    #: Tasks that run at the same time.
    n_workers: int

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Answer]:
        """One answer per item, in any order; an error in one task doesn't stop the others.

        A task whose worker dies is tried again, `MAX_ATTEMPTS` times in all. Closing the iterator
        ends all workers.
        """


def guarded(function: Callable[[Any], Any], item: Any) -> tuple[Any, str]:
    """Result and error text of a call; runs in the worker, so that any error can travel."""
    try:
        return function(item), ""
    except Exception as error:  # noqa: BLE001 - whatever a run raises is told, not hidden
        return None, "".join(traceback.format_exception(error))


def make_executor(address: str, *, n_jobs: int = -1) -> Executor:
    """The executor at an address.

    Args:
        address: `local`, or `local:4` for four processes; `dask://HOST:PORT` for a running
            scheduler, `dask://local` for a cluster on this machine, `dask://slurm?jobs=8` for one
            through dask-jobqueue; `ray://HOST:PORT` or `ray://local`.
        n_jobs: Processes of the plain `local` executor; -1 for one per core.

    Raises:
        OptionError: If the address isn't of one of these forms.
        MissingDependencyError: If the engine isn't installed.
    """
    scheme, _, rest = address.partition("://")
    if scheme == "dask" and rest:
        from parabolt.experiments.executors.dask import DaskExecutor

        return DaskExecutor(rest)
    if scheme == "ray" and rest:
        from parabolt.experiments.executors.ray import RayExecutor

        return RayExecutor(rest)
    name, _, count = address.partition(":")
    if name == "local" and (not count or (count.isdigit() and int(count) > 0)):
        from parabolt.experiments.executors.local import LocalExecutor

        return LocalExecutor(int(count) if count else n_jobs)
    raise OptionError(
        f"executor: expected local, local:N, dask://ADDRESS or ray://ADDRESS, got {address!r}"
    )
