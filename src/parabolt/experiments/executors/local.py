"""Local processes, through loky (the engine of joblib)."""

from __future__ import annotations

from collections import deque
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from typing import TYPE_CHECKING, Any

import joblib
from joblib.externals.loky import ProcessPoolExecutor

from parabolt.errors import OptionError
from parabolt.experiments.executors.executor import MAX_ATTEMPTS, Answer, guarded

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

#: One BLAS thread per process: the matrices are small, and the processes fill the cores.
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)


class LocalExecutor:
    """Processes on this machine.

    Args:
        n_jobs: How many; -1 for one per core.
    """

    def __init__(self, n_jobs: int = -1) -> None:
        if n_jobs != -1 and n_jobs < 1:
            raise OptionError(f"jobs: expected -1 or a positive whole number, got {n_jobs}")
        self.n_workers = joblib.cpu_count() if n_jobs == -1 else n_jobs

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Answer]:
        """See `Executor.map`.

        When a process dies, the pool doesn't say which task killed it. All tasks that were under
        way are then tried alone, one after the other, so that the guilty one is found and the
        innocent ones finish.
        """
        waiting = deque(range(len(items)))
        while waiting:
            suspects = yield from self._together(function, items, waiting)
            for index in suspects:
                yield self._alone(function, items[index], index)

    def _together(
        self, function: Callable[[Any], Any], items: Sequence[Any], waiting: deque[int]
    ) -> Generator[Answer, None, list[int]]:
        under_way: dict[Future[tuple[Any, str]], int] = {}
        pool = ProcessPoolExecutor(min(self.n_workers, len(waiting)), env=_ONE_THREAD)
        try:
            while waiting or under_way:
                while waiting and len(under_way) < self.n_workers:
                    index = waiting.popleft()
                    under_way[pool.submit(guarded, function, items[index])] = index
                for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                    result, error = future.result()
                    yield Answer(under_way.pop(future), result, error)
        except BrokenExecutor:
            return sorted(under_way.values())
        finally:
            pool.shutdown(kill_workers=True)
        return []

    def _alone(self, function: Callable[[Any], Any], item: Any, index: int) -> Answer:
        reason = ""
        for attempt in range(2, MAX_ATTEMPTS + 1):
            pool = ProcessPoolExecutor(1, env=_ONE_THREAD)
            try:
                result, error = pool.submit(guarded, function, item).result()
                return Answer(index, result, error, attempt)
            except BrokenExecutor as broken:
                reason = f"the worker process died: {' '.join(str(broken).split())}"
            finally:
                pool.shutdown(kill_workers=True)
        return Answer(index, error=reason, n_attempts=MAX_ATTEMPTS)
