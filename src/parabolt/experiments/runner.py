"""Runs a study: what is missing is computed, and stored as it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parabolt.errors import LockedError, StoreError
from parabolt.experiments.executors.executor import Executor, make_executor
from parabolt.experiments.manifest import load_manifest, manifest, save_manifest
from parabolt.experiments.progress import Progress, ProgressMeter
from parabolt.experiments.run import Run, RunKey, execute, resolved_options
from parabolt.experiments.store import RunStore, run_name, write_whole
from parabolt.experiments.study import format_study
from parabolt.lock import Lock
from parabolt.optimizers.registry import make_optimizer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from parabolt.experiments.study import Study
    from parabolt.problems.problem import Problem


def run_study(
    study: Study,
    problems: Sequence[Problem],
    folder: Path,
    *,
    executor: Executor | None = None,
    observe: Callable[[Progress], None] | None = None,
) -> Progress:
    """Runs what is missing of a study; the same call resumes it.

    Args:
        study: The study.
        problems: Its problems, in its order.
        folder: Where results go; one study at a time may write there.
        executor: Where runs are computed; by default at the study's own address.
        observe: Called at the start and after each run.

    Returns:
        The final state: runs that failed for good are in `n_failed`, with their reasons in the
        directory `failed`. They are tried again the next time.

    Raises:
        UnknownNameError: For an unknown optimizer, before anything runs.
        MissingDependencyError: For an optimizer or engine that isn't installed, before anything
            runs.
        OptionError: For an option that an optimizer doesn't know, before anything runs.
        StudyError: If the directory holds results of other data, another protocol or another
            major version.
        LockedError: If another process is writing there.
        StoreError: If the directory can't be written.
    """
    for problem, key in study.keys(problems):
        if key.seed == study.seeds[0]:
            make_optimizer(key.method, problem.space, **resolved_options(key))
    store = RunStore(folder)
    with _lock(folder):
        missing = _missing(study, problems, store)
        n_total = len(study.problems) * len(study.optimizers) * len(study.seeds)
        engine = executor or make_executor(study.executor)
        meter = ProgressMeter(folder, n_total, n_total - len(missing), engine.n_workers)
        meter.write()
        if observe:
            observe(meter.read())
        answers = engine.map(_execute, missing) if missing else iter(())
        for answer in answers:
            key = missing[answer.index][1]
            if answer.error:
                store.save_failure(key, answer.error, answer.n_attempts)
                meter.failed(n_attempts=answer.n_attempts)
            else:
                store.save(answer.result)
                meter.finished(answer.result, n_attempts=answer.n_attempts)
            meter.write()
            if observe:
                observe(meter.read())
        meter.write(is_last=True)
        return meter.read()


def _lock(folder: Path) -> Lock:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return Lock(folder / "lock.json", of=folder)
    except LockedError:
        raise
    except OSError as error:
        raise StoreError(f"cannot write to {folder}: {error.strerror}") from error


def _missing(
    study: Study, problems: Sequence[Problem], store: RunStore
) -> list[tuple[Problem, RunKey]]:
    """The runs that are not there, once it is certain that those that are there belong."""
    keys = study.keys(problems)
    is_known = load_manifest(store.folder) is not None
    store.clean()
    write_whole(store.folder / "study.toml", format_study(study).encode())
    save_manifest(manifest(study, problems), store.folder)
    finished = store.finished()
    there = {run_name(key) for _, key in keys} & finished
    if not is_known:  # runs without a manifest are believed one by one
        there = {run_name(key) for _, key in keys if store.has(key)}
    return [(problem, key) for problem, key in keys if run_name(key) not in there]


def _execute(item: tuple[Problem, RunKey]) -> Run:
    return execute(*item)
