"""Runs on a Ray cluster, there already or on this machine."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

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
    import ray
except ImportError as error:
    raise MissingDependencyError.of("ray", "ray") from error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class RayExecutor:
    """A Ray cluster.

    Args:
        address: What follows `ray://`: `HOST:PORT` of a cluster's client server, or `local`.

    Raises:
        OptionError: If there is no cluster at the address.
    """

    def __init__(self, address: str) -> None:
        try:
            ray.init(
                address="local" if address == "local" else f"ray://{address}",
                include_dashboard=False if address == "local" else None,
                log_to_driver=False,
                logging_level=logging.ERROR,
                ignore_reinit_error=True,
            )
        except (ConnectionError, ValueError) as error:
            raise OptionError(
                f"executor: expected a Ray cluster at {address}, got none: {error}"
            ) from error
        self.n_workers = max(1, int(ray.cluster_resources().get("CPU", 1)))

    def map(
        self, function: Callable[[Any], Any], items: Sequence[Any], limits: Limits = NO_LIMITS
    ) -> Iterator[TaskResult]:
        """See `Executor.map`. Ray itself retries tasks whose workers die."""
        if limits:
            function = partial(in_own_process, function, limits)
        task = ray.remote(num_cpus=1, max_retries=MAX_ATTEMPTS - 1)(guarded)
        numbers = {task.remote(function, item): index for index, item in enumerate(items)}
        try:
            while numbers:
                (done, *_), _ = ray.wait(list(numbers), num_returns=1)
                index = numbers.pop(done)
                try:
                    yield TaskResult(index, *ray.get(done))
                except ray.exceptions.RayError as error:
                    reason = " ".join(str(error).split())
                    yield TaskResult(index, error=reason, n_attempts=MAX_ATTEMPTS)
        finally:
            ray.shutdown()
