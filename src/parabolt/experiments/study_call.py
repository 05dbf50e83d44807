"""A study in one call, from Python."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from parabolt.errors import OptionError
from parabolt.experiments import runner
from parabolt.experiments.executors.addresses import make_executor
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.results import Results, read_results
from parabolt.experiments.study import OptimizerChoice, Study, check_labels, seeds_of
from parabolt.problems.problem import Problem
from parabolt.problems.registry import load_problem
from parabolt.problems.suites import problems_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from parabolt.experiments.progress import StudyProgress


def run_study(
    problems: str | os.PathLike[str] | Problem | Sequence[str | os.PathLike[str] | Problem],
    optimizers: object | Sequence[object] | Mapping[str, object],
    *,
    seeds: int | Sequence[int] = 10,
    protocol: Protocol | Mapping[str, Any] | None = None,
    folder: str | os.PathLike[str] | None = None,
    executor: str = "local",
    observe: Callable[[StudyProgress], None] | None = None,
) -> Results:
    """Runs optimizers on problems, and gives the results.

    Args:
        problems: One or more problems: names, paths or addresses as `load_problem` takes them,
            names of suites, or problems themselves.
        optimizers: One or more optimizers, or labels with optimizers: names, or anything that
            `optimizer_factory` takes: a class of a notebook, an instance, a function
            `f(space, history, rng)`, an object with ask and tell.
        seeds: How many seeds, from 0; or the seeds.
        protocol: The protocol, or what differs from the published one.
        folder: Where results go; the same call goes on there, and runs what is missing. By default
            nothing is kept but what is returned.
        executor: Where runs are computed, see `make_executor`.
        observe: Called at the start and after each run.

    Raises:
        OptionError: For an option, seed or protocol that cannot be.
        StudyError: If the folder holds results of something else.
        LockedError: If another process is writing there.
    """
    wanted = [p if isinstance(p, Problem) else os.fspath(p) for p in _several(problems)]
    each = [p for w in wanted for p in (problems_of([w]) if isinstance(w, str) else [w])]
    loaded = [p if isinstance(p, Problem) else load_problem(p) for p in each]
    addresses = [p.name if isinstance(p, Problem) else p for p in each]
    study = Study(
        problems=tuple(addresses),
        optimizers=_choices(optimizers),
        seeds=seeds_of(seeds),
        protocol=_changes(protocol),
        executor=executor,
    )
    place: AbstractContextManager[str | os.PathLike[str]] = (
        TemporaryDirectory() if folder is None else nullcontext(folder)
    )
    with place as name:
        runner.run_study(
            study, loaded, Path(name), executor=make_executor(executor), observe=observe
        )
        keys = [key for _, key in study.keys(loaded)]
        return read_results([Path(name)], only=keys)


def _several(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _choices(given: Any) -> tuple[OptimizerChoice, ...]:
    if isinstance(given, Mapping):
        choices = [OptimizerChoice.of(found, label) for label, found in given.items()]
    else:
        choices = [OptimizerChoice.of(found) for found in _several(given)]
    if not choices:
        raise OptionError("optimizers: expected at least one, got none")
    check_labels(choices)
    return tuple(choices)


def _changes(protocol: Protocol | Mapping[str, Any] | None) -> tuple[tuple[str, Any], ...]:
    if isinstance(protocol, Protocol):
        return tuple((f.name, getattr(protocol, f.name)) for f in fields(Protocol))
    changes = dict(protocol or {})
    if unknown := sorted(set(changes) - {f.name for f in fields(Protocol)}):
        raise OptionError(
            f"protocol: expected fields among {', '.join(f.name for f in fields(Protocol))}, "
            f"got {', '.join(unknown)}"
        )
    return tuple(sorted(changes.items()))
