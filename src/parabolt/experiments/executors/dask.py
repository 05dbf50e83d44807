"""Runs on a Dask cluster: one that is there, one on this machine, or one through Slurm."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from parabolt.errors import MissingDependencyError, OptionError
from parabolt.experiments.executors.executor import (
    MAX_ATTEMPTS,
    NO_LIMITS,
    Limits,
    TaskResult,
    guarded,
)
from parabolt.experiments.executors.local import in_own_process

try:
    import distributed
except ImportError as error:
    raise MissingDependencyError.of("distributed", "dask") from error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class DaskExecutor:
    """A Dask cluster.

    Args:
        address: What follows `dask://`: `HOST:PORT` of a scheduler, `local`, or `slurm?jobs=N`,
            whose queue, cores and memory come from dask-jobqueue's own configuration.

    Raises:
        OptionError: If there is no scheduler at the address.
        MissingDependencyError: If dask-jobqueue is asked for and not installed.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._cluster: Any = nullcontext()  # what is to be closed besides the client
        self._client = self._connect(urlsplit(f"dask://{address}"))
        self.n_workers = max(1, sum(self._client.nthreads().values()))

    def map(
        self, function: Callable[[Any], Any], items: Sequence[Any], limits: Limits = NO_LIMITS
    ) -> Iterator[TaskResult]:
        """See `Executor.map`.

        Dask itself moves tasks away from workers that die. It holds all tasks of such a worker
        suspect, those that only waited there too, so the last attempt of a suspect is made alone.
        Limits are kept in a process of the task's own.
        """
        if limits:
            function = partial(in_own_process, function, limits)
        with self._cluster, self._client as client:
            before = client.run_on_scheduler(_allow_failures, n_failures=MAX_ATTEMPTS - 2)
            try:
                yield from self._results(client, function, items)
            finally:
                client.run_on_scheduler(_allow_failures, n_failures=before)

    def _results(
        self, client: Any, function: Callable[[Any], Any], items: Sequence[Any]
    ) -> Iterator[TaskResult]:
        numbers = {
            client.submit(guarded, function, item, pure=False): index
            for index, item in enumerate(items)
        }
        suspects = []
        for future in distributed.as_completed(numbers):
            index = numbers.pop(future)
            if isinstance(future.exception(), distributed.KilledWorker):
                suspects.append(index)
            else:
                yield _result(index, future, n_attempts=1)
            future.release()
        client.run_on_scheduler(_allow_failures, n_failures=0)
        for index in suspects:
            future = client.submit(guarded, function, items[index], pure=False)
            yield _result(index, future, n_attempts=MAX_ATTEMPTS)
            future.release()

    def _connect(self, address: Any) -> Any:
        if address.hostname == "local":
            return distributed.Client(threads_per_worker=1)
        if address.hostname == "slurm":
            self._cluster = _slurm_cluster(parse_qs(address.query))
            return distributed.Client(self._cluster)
        try:
            return distributed.Client(f"tcp://{self._address}", timeout="10s")
        except (OSError, TimeoutError, ValueError) as error:
            raise OptionError(
                f"executor: expected a Dask scheduler at {self._address}, got none: {error}"
            ) from error


def _result(index: int, future: Any, *, n_attempts: int) -> TaskResult:
    """What a task gave, once it has ended."""
    if failure := future.exception():
        return TaskResult(index, error=" ".join(str(failure).split()), n_attempts=n_attempts)
    value, error, details = future.result()
    return TaskResult(index, value, error, details, n_attempts)


def _allow_failures(dask_scheduler: Any, n_failures: int) -> int:
    """Sets how many workers may die over a task before it fails; returns what it was."""
    before: int = dask_scheduler.allowed_failures
    dask_scheduler.allowed_failures = n_failures
    return before


def _slurm_cluster(query: dict[str, list[str]]) -> Any:
    try:
        from dask_jobqueue import SLURMCluster
    except ImportError as error:
        raise MissingDependencyError.of("dask-jobqueue", "dask") from error
    jobs = query.get("jobs", ["1"])[0]
    if not jobs.isdigit() or int(jobs) < 1:
        raise OptionError(f"executor: expected dask://slurm?jobs=N, got jobs={jobs}")
    try:
        cluster = SLURMCluster()
    except ValueError as error:  # its message says how in Python, which nobody writes here
        raise OptionError(
            "executor: expected dask-jobqueue to be configured with the cores and memory of a job, "
            "got neither or one; try DASK_JOBQUEUE__SLURM__CORES=8 and "
            "DASK_JOBQUEUE__SLURM__MEMORY=24GB, or ~/.config/dask/jobqueue.yaml"
        ) from error
    cluster.scale(jobs=int(jobs))
    return cluster
