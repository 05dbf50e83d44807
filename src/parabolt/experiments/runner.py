"""Runs a study: what is missing is computed, and stored as it ends."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from parabolt.errors import LockedError, OptionError, StoreError, StudyError
from parabolt.experiments.environment import PACKAGES
from parabolt.experiments.executors.addresses import make_executor
from parabolt.experiments.executors.executor import Limits
from parabolt.experiments.manifest import load_manifest, save_manifest
from parabolt.experiments.progress import ProgressMeter, StudyProgress
from parabolt.experiments.results import have_same_evaluations, problem_labels
from parabolt.experiments.run import execute
from parabolt.experiments.store import FailedRun, RunStore
from parabolt.experiments.study import check_labels
from parabolt.experiments.transfer import options_of_run
from parabolt.lock import Lock
from parabolt.optimizers.registry import make_optimizer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from parabolt.experiments.executors.executor import Executor, TaskResult
    from parabolt.experiments.run import Run
    from parabolt.experiments.run_key import RunKey
    from parabolt.experiments.study import Study
    from parabolt.problems.problem import Problem


def run_study(
    study: Study,
    problems: Sequence[Problem],
    folder: Path,
    *,
    executor: Executor | None = None,
    observe: Callable[[StudyProgress], None] | None = None,
) -> StudyProgress:
    """Runs what is missing of a study; the same call resumes it.

    Args:
        study: The study.
        problems: Its problems, in its order.
        folder: Where results go; one study at a time may write there.
        executor: Where runs are computed; by default at the study's own address.
        observe: Called at the start and after each run.

    Returns:
        The final state: runs that failed for good are in `n_failed`, with their reasons in the
        directory `failed`. They are tried again the next time. `n_done` counts what can be read
        back.

    Raises:
        UnknownNameError: For an unknown optimizer, before anything runs.
        MissingDependencyError: For an optimizer or engine that isn't installed, before anything
            runs.
        OptionError: For an option that an optimizer doesn't know, or a protocol that a problem
            doesn't allow, before anything runs.
        StudyError: If the directory holds results of other data, another protocol, other options,
            other code or another version.
        LockedError: If another process is writing there.
        StoreError: If the directory can't be written.
    """
    wanted = [key for _, key in study.keys(problems)]
    _check(study, problems)
    with lock_store(folder):
        return _run(study, problems, wanted, folder, executor, observe or (lambda _: None))


def lock_store(folder: Path, *, is_lasting: bool = True) -> Lock:
    """The lock of a directory, for whoever writes runs or reports there.

    Args:
        folder: The directory; it is made if it is not there.
        is_lasting: Whether the lock's file stays there, free.

    Raises:
        LockedError: If another process holds it.
        StoreError: If the directory can't be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return Lock(folder / "lock.json", of=folder, is_lasting=is_lasting)
    except LockedError:
        raise
    except OSError as error:
        raise StoreError(f"cannot write to {folder}: {error.strerror}") from error


@dataclass(frozen=True)
class _Task:
    """A run to compute.

    Attributes:
        key: What to run.
        problem: Number of the problem.
        choice: Number of the optimizer.
        shorter: A finished run of a smaller budget that this one extends.
    """

    key: RunKey
    problem: int
    choice: int
    shorter: Run | None = None


def _run(
    study: Study,
    problems: Sequence[Problem],
    wanted: Sequence[RunKey],
    folder: Path,
    executor: Executor | None,
    observe: Callable[[StudyProgress], None],
) -> StudyProgress:
    store = RunStore(folder)
    store.clean()
    notices = _set_aside_damaged(store)
    _check_versions(folder)
    tasks = _missing(study, problems, wanted, store)
    save_manifest(study, problems, wanted, folder)
    engine = executor or make_executor(study.executor)
    meter = ProgressMeter(
        folder, len(wanted), len(wanted) - len(tasks), engine.n_workers, tuple(notices)
    )
    meter.write()
    observe(meter.read())
    protocol = study.protocol_of(problems[0].name)
    limits = Limits(protocol.run_time_limit_s, protocol.run_memory_limit_gib)
    compute = partial(_execute, list(problems), [choice.source for choice in study.optimizers])
    names = problem_labels(wanted)
    items = [replace(task, shorter=None) for task in tasks]
    for result in engine.map(compute, items, limits) if tasks else ():
        task = tasks[result.index]
        failure = _failure(task, problems[task.problem], result)
        if failure is not None:
            store.save_failure(failure)
            meter.failed(n_attempts=result.n_attempts)
        else:
            store.save(result.value)
            if task.shorter is not None:
                store.remove(task.shorter.key)
            name = names[task.key.problem, task.key.content_hash]
            meter.finished(result.value, name, n_attempts=result.n_attempts)
        meter.write()
        observe(meter.read())
    return _end(store, wanted, meter)


def _end(store: RunStore, wanted: Sequence[RunKey], meter: ProgressMeter) -> StudyProgress:
    """The final state, counted from what can be read back.

    Raises:
        StudyError: If files of finished runs are gone, or are not what was written.
    """
    meter.write(is_last=True)
    final = meter.read()
    there = store.finished()
    n_there = sum(key.digest[:16] in there for key in wanted)
    if n_there < final.n_done:
        raise StudyError(
            f"{final.n_done} runs finished, and {n_there} can be read back from {store.folder}: "
            "their files were removed or changed by others; run the study again"
        )
    return final


def _check(study: Study, problems: Sequence[Problem]) -> None:
    """Raises unless every optimizer can be made for every problem under its protocol."""
    check_labels(study.optimizers)
    contents = [(problem.name, problem.content_hash) for problem in problems]
    if len(set(contents)) < len(contents):
        raise StudyError("problems: expected distinct problems, got one twice")
    for problem in problems:
        protocol = study.protocol_of(problem.name)
        try:
            protocol.check_candidates(problem.evaluate_many(problem.space.encoded).is_feasible)
        except OptionError as error:
            raise OptionError(f"[protocol] on {problem.name}: {error}") from error
        for choice in study.optimizers:
            make_optimizer(
                choice.name if choice.source is None else choice.source,
                problem.space,
                repeats=protocol.repeats,
                **options_of_run(problem.instance, protocol, dict(choice.options)),
            )


def _set_aside_damaged(store: RunStore) -> list[str]:
    """Renames files of runs that can't be read back, so that these are run again."""
    notices = []
    for path in store.damaged():
        aside = path.with_name(f"{path.name}.damaged")
        path.replace(aside)
        notices.append(f"{path.name} could not be read back: it is now {aside.name}")
    return notices


def _check_versions(folder: Path) -> None:
    """Raises if the directory's results come from another major version of a library."""
    found = load_manifest(folder)
    if found is None:
        return
    from parabolt.experiments.environment import environment

    here = environment()
    for name in PACKAGES:
        before, now = found.environment.get(name), here.get(name)
        if before and now and before.partition(".")[0] != now.partition(".")[0]:
            raise StudyError(
                f"{folder} holds results of {name} {before}, and {now} is installed; try another "
                f"directory, or install {name}=={before}"
            )


def _missing(
    study: Study, problems: Sequence[Problem], wanted: Sequence[RunKey], store: RunStore
) -> list[_Task]:
    """The runs that are not there, once it is certain that those that are there belong.

    A run of a larger budget that is there is cut to the wanted one, and one of a smaller budget is
    extended.
    """
    there = store.finished()
    strangers = _strangers(wanted, store)
    tasks = []
    numbered = iter(wanted)
    for number in range(len(problems)):
        for choice in range(len(study.optimizers)):
            for _ in study.seeds:
                key = next(numbered)
                if key.digest[:16] in there:
                    continue
                other = strangers.get(_without_budget(key))
                if other is not None and len(other) > other.n_initial + key.protocol.n_evaluations:
                    store.save(other.cut(key.protocol.n_evaluations))
                else:
                    tasks.append(_Task(key, number, choice, other))
    return tasks


def _strangers(wanted: Sequence[RunKey], store: RunStore) -> dict[RunKey, Run]:
    """Runs of the directory that are wanted with another budget, by their keys without a budget.

    Raises:
        StudyError: If a run goes by the name of a wanted one, and differs in more than the budget.
    """
    digests = {key.digest[:16] for key in wanted}
    by_name: dict[tuple[str, str], list[RunKey]] = {}
    for key in wanted:
        by_name.setdefault((key.problem, key.optimizer), []).append(key)
    found: dict[RunKey, Run] = {}
    for digest, path in store.finished().items():
        if digest in digests:
            continue
        run = store.load(path)
        alike = by_name.get((run.key.problem, run.key.optimizer))
        if alike is None:
            continue
        closest = min(alike, key=lambda key: len(_differences(run.key, key)))
        if differing := _differences(run.key, closest):
            raise StudyError(
                f"{store.folder} holds results of another {run.key.optimizer} on "
                f"{run.key.problem} ({'; '.join(differing)}); try another directory"
            )
        longest = found.get(_without_budget(run.key))
        if run.key.protocol.workers == 1 and (longest is None or len(run) > len(longest)):
            found[_without_budget(run.key)] = run
    return found


def _differences(there: RunKey, wanted: RunKey) -> list[str]:
    """What differs between two runs besides seed and budget, in words."""
    one, other = (
        {**key.identity(), **key.protocol.identity(), "protocol": None, "seed": None}
        for key in (_without_budget(there), _without_budget(wanted))
    )
    names = dict.fromkeys([*one, *other])
    return [
        f"{name}: {one.get(name, 'default')} there, {other.get(name, 'default')} now"
        for name in names
        if one.get(name) != other.get(name)
    ]


def _without_budget(key: RunKey) -> RunKey:
    return replace(key, protocol=replace(key.protocol, n_evaluations=0))


def _failure(task: _Task, problem: Problem, result: TaskResult) -> FailedRun | None:
    """Why a run failed; None if it did not."""
    error, details = result.error, result.details
    if not error and task.shorter is not None:
        n = task.shorter.key.protocol.n_evaluations
        if not have_same_evaluations(result.value.cut(n), task.shorter):
            error = (
                f"its first {n} evaluations differ from those of the finished run that it was to "
                "extend: seed and key don't fix this optimizer's run"
            )
    if not error:
        return None
    return FailedRun(
        key=task.key,
        reason=error,
        details=details,
        n_attempts=result.n_attempts,
        optimum=problem.optimum.value,
        n_gpus=problem.instance.cluster.n_gpus,
    )


def _execute(problems: list[Problem], sources: list[object | None], task: _Task) -> Run:
    return execute(problems[task.problem], task.key, sources[task.choice])
