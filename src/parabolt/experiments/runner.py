"""Runs many runs in processes; each is stored as soon as it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import joblib

from parabolt.experiments.run import Run, RunKey, execute
from parabolt.optimizers.registry import optimizer_class

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from parabolt.experiments.protocol import Protocol
    from parabolt.experiments.store import RunStore
    from parabolt.problems.problem import Problem


def run_all(
    problems: Sequence[Problem],
    optimizers: Sequence[str],
    seeds: Iterable[int],
    *,
    protocol: Callable[[str], Protocol],
    store: RunStore,
    n_jobs: int = -1,
    progress: Callable[[int, int], None] | None = None,
) -> list[Run]:
    """Runs problems x optimizers x seeds; runs that are in the store already are not run again.

    Args:
        problems: Problems.
        optimizers: Names of optimizers.
        seeds: Seeds.
        protocol: Gives the protocol of a problem by its name.
        store: Where finished runs go, each written by the process that ran it.
        n_jobs: Processes; -1 for one per core. BLAS has one thread in each.
        progress: Called with the number of finished runs and of all runs.

    Returns:
        All runs, ordered by problem, optimizer and seed.

    Raises:
        UnknownNameError: For an unknown optimizer, before anything runs.
        MissingDependencyError: For an optimizer whose library is missing, before anything runs.
        OptionError: If the store holds runs of other data or another protocol.
    """
    for name in optimizers:
        optimizer_class(name)
    seeds = list(seeds)
    wanted = [
        (problem, RunKey.of(problem, optimizer, seed, protocol(problem.name)))
        for problem in problems
        for optimizer in optimizers
        for seed in seeds
    ]
    missing = [(problem, key) for problem, key in wanted if not store.has(key)]
    done = len(wanted) - len(missing)
    if progress:
        progress(done, len(wanted))
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        pool = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
        for _ in pool(joblib.delayed(_run_and_store)(p, key, store) for p, key in missing):
            done += 1
            if progress:
                progress(done, len(wanted))
    return [store.load(store.path(key)) for _, key in wanted]


def _run_and_store(problem: Problem, key: RunKey, store: RunStore) -> None:
    store.save(execute(problem, key))
