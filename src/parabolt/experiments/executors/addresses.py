"""Executors by address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parabolt.errors import OptionError

if TYPE_CHECKING:
    from parabolt.experiments.executors.executor import Executor


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
    if name == "local" and (not count or (count.isascii() and count.isdigit() and int(count) > 0)):
        from parabolt.experiments.executors.local import LocalExecutor

        return LocalExecutor(int(count) if count else n_jobs)
    raise OptionError(
        f"executor: expected local, local:N, dask://ADDRESS or ray://ADDRESS, got {address!r}"
    )
