"""Results of one or more stores, put together so that nothing is pooled that is not alike.

A *board* holds what may be compared: one problem (by its data) under one protocol. On a board, a
*group* holds the runs of one optimizer: name, options, code and version of parabolt. The same run
counts once, however often it was read.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from parabolt.documents import is_there
from parabolt.errors import TableError
from parabolt.experiments.archive import unpack_archive
from parabolt.experiments.manifest import load_manifest
from parabolt.experiments.packed import read_packed
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.run import Run
from parabolt.experiments.store import RunStore

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from parabolt.experiments.run_key import RunKey
    from parabolt.experiments.store import FailedRun

#: How a failed run counts: as one that found nothing, or not at all.
FailedCount = Literal["nothing", "left-out"]


@dataclass(frozen=True, eq=False)
class Group:
    """Runs of one optimizer on one board; no two have the same seed.

    Attributes:
        label: What it is called; distinct on its board.
        key: Key of one of its runs; they differ in the seed alone.
        runs: Finished runs by seed.
        failed: Runs that failed for good, by seed.
        missing_seeds: Seeds that were asked for and neither finished nor failed.
    """

    label: str
    key: RunKey
    runs: tuple[Run, ...]
    failed: tuple[FailedRun, ...]
    missing_seeds: tuple[int, ...]

    @property
    def n_wanted(self) -> int:
        """Runs that were asked for."""
        return len(self.runs) + len(self.failed) + len(self.missing_seeds)

    @property
    def is_complete(self) -> bool:
        """Whether every run that was asked for has finished."""
        return len(self.runs) == self.n_wanted

    @property
    def summary(self) -> str:
        """How many runs there are, such as `8 of 10 runs; 2 failed: RuntimeError: singular`."""
        text = f"{len(self.runs)} of {self.n_wanted} runs"
        for reason, count in Counter(failed.reason for failed in self.failed).most_common():
            text += f"; {count} failed: {reason}"
        return f"{text}; {len(self.missing_seeds)} missing" if self.missing_seeds else text


@dataclass(frozen=True, eq=False)
class Board:
    """What may be compared: groups of runs on one problem under one protocol.

    Attributes:
        label: What it is called; distinct in the results.
        problem: Name of the problem.
        data_version: Version of its data.
        content_hash: SHA-256 of its data.
        protocol: The protocol.
        optimum: Throughput of the optimum, in iterations/s; NaN where no run says.
        n_gpus: GPUs that a trial occupies; 0 where unknown.
        groups: Its groups, in the order in which they were asked for.
    """

    label: str
    problem: str
    data_version: str
    content_hash: str
    protocol: Protocol
    optimum: float
    n_gpus: int
    groups: tuple[Group, ...]

    def counted(self, failed: FailedCount = "nothing") -> dict[str, list[Run]]:
        """Group label to the runs that count; each run's key carries the labels of board and group.

        Args:
            failed: Whether a failed run counts as one that found nothing, or is left out.
        """
        return {group.label: self._counted(group, failed) for group in self.groups}

    def common_seeds(self, failed: FailedCount = "nothing") -> tuple[int, ...]:
        """Seeds that count in every group, ascending."""
        seeds = [{run.key.seed for run in runs} for runs in self.counted(failed).values()]
        return tuple(sorted(set.intersection(*seeds))) if seeds else ()

    def has_unequal_seeds(self, failed: FailedCount = "nothing") -> bool:
        """Whether groups differ in their seeds, so that only the common ones are compared."""
        counts = {len(runs) for runs in self.counted(failed).values()}
        return counts != {len(self.common_seeds(failed))}

    def _counted(self, group: Group, failed: FailedCount) -> list[Run]:
        runs = list(group.runs)
        if failed == "nothing":
            runs += [Run.without_finds(f.key, self.optimum, self.n_gpus) for f in group.failed]
        labelled = [
            replace(run, key=replace(run.key, problem=self.label, optimizer=group.label))
            for run in runs
        ]
        return sorted(labelled, key=lambda run: run.key.seed)


@dataclass(frozen=True, eq=False)
class Results:
    """Results of one or more stores.

    Attributes:
        boards: What may be compared, in the order in which it was asked for.
        notices: What a reader must know besides, in words.
    """

    boards: tuple[Board, ...]
    notices: tuple[str, ...] = ()

    @property
    def n_done(self) -> int:
        """Runs that finished."""
        return sum(len(group.runs) for group in self._groups)

    @property
    def n_failed(self) -> int:
        """Runs that failed for good."""
        return sum(len(group.failed) for group in self._groups)

    @property
    def n_total(self) -> int:
        """Runs that were asked for."""
        return sum(group.n_wanted for group in self._groups)

    @property
    def _groups(self) -> list[Group]:
        return [group for board in self.boards for group in board.groups]

    def counted(self, failed: FailedCount = "nothing") -> list[Run]:
        """The runs of all boards that count, see `Board.counted`."""
        return [
            run for board in self.boards for runs in board.counted(failed).values() for run in runs
        ]


def read_results(
    folders: Sequence[Path],
    *,
    only: Iterable[RunKey] | None = None,
    baselines: Sequence[Path] = (),
) -> Results:
    """The results of stores, read together.

    Args:
        folders: Directories of runs, packed files of them (see `pack_store`), or bundles (`.zip`,
            see `make_bundle`).
        only: Keys of the runs to read; by default all that are there, and those that are missing
            from their studies.
        baselines: Further ones, of which only runs on the problems of `folders` are added.

    Raises:
        TableError: If a file of a run is damaged, one of them is no store of runs, or no run has
            ended in any of them.
        StudyError: If a store's `study.json` can't be read, or a bundle is not what was bundled.
    """
    read = _together(map(_read, folders))
    if only is not None:
        wanted = list(only)
        read = replace(read.only(set(wanted).__contains__), wanted=wanted)
    if not read.runs and not read.failed:
        raise TableError(f"expected runs in {', '.join(map(str, folders))}, got none")
    names = {key.problem for key in read.keys}
    added = [_read(path).only(lambda key: key.problem in names) for path in baselines]
    notices = tuple(
        f"{len(more.keys)} runs of the published {path.stem} were added"
        for path, more in zip(baselines, added, strict=True)
    )
    found = _together([read, *added])
    results = collect(found.runs, found.failed, found.wanted)
    return replace(results, notices=(*results.notices, *notices))


@dataclass(frozen=True)
class _Read:
    """What was read from stores."""

    runs: list[Run]
    failed: list[FailedRun]
    wanted: list[RunKey]

    @property
    def keys(self) -> list[RunKey]:
        return [run.key for run in self.runs] + [failure.key for failure in self.failed]

    def only(self, is_asked: Callable[[RunKey], bool]) -> _Read:
        return _Read(
            [run for run in self.runs if is_asked(run.key)],
            [failure for failure in self.failed if is_asked(failure.key)],
            [key for key in self.wanted if is_asked(key)],
        )


def _read(path: Path) -> _Read:
    if not is_there(path):
        raise TableError(f"expected runs in {path}, got nothing there")
    if path.suffix == ".zip":
        with TemporaryDirectory() as name:
            unpack_archive(path, Path(name))
            return _read(Path(name))
    if path.is_file():
        return _Read(*read_packed(path), [])
    store, manifest = RunStore(path), load_manifest(path)
    runs = [store.load(file) for file in store.paths()]
    found = _Read(runs, store.load_failures(), list(manifest.keys) if manifest else [])
    if not found.keys and not found.wanted:
        raise TableError(f"expected runs in {path}, got none")
    return found


def _together(parts: Iterable[_Read]) -> _Read:
    found = _Read([], [], [])
    for part in parts:
        found.runs.extend(part.runs)
        found.failed.extend(part.failed)
        found.wanted.extend(part.wanted)
    return found


def collect(
    runs: Iterable[Run], failed: Iterable[FailedRun] = (), wanted: Iterable[RunKey] = ()
) -> Results:
    """Puts runs into boards and groups.

    Args:
        runs: Finished runs; of several with one key the first counts.
        failed: Failed runs; one that finished elsewhere isn't failed.
        wanted: Keys of runs that were asked for.
    """
    finished: dict[RunKey, Run] = {}
    contradicting: dict[RunKey, None] = {}
    for run in runs:
        first = finished.setdefault(run.key, run)
        if not have_same_evaluations(first, run):
            contradicting[run.key] = None
    failures = {f.key: f for f in failed if f.key not in finished}
    keys = dict.fromkeys([*wanted, *finished, *failures])
    boards: dict[Hashable, dict[Hashable, list[RunKey]]] = defaultdict(lambda: defaultdict(list))
    for key in keys:
        boards[_board_of(key)][_group_of(key)].append(key)
    firsts = [next(iter(groups.values()))[0] for groups in boards.values()]
    labels = _distinct(firsts, lambda key: key.problem, _BOARD_MARKS)
    notices = tuple(
        f"{key.problem}, {key.optimizer}, seed {key.seed}: two runs with one key have different "
        "evaluations, so the seed does not fix them; the one read first counts"
        for key in contradicting
    )
    made = [
        _board(label, list(groups.values()), finished, failures)
        for label, groups in zip(labels, boards.values(), strict=True)
    ]
    return Results(tuple(made), notices)


#: What was told is compared to twelve digits: processors round the last ones differently, such as
#: those of a simulated machine's figures.
_TOLD_TOLERANCE = 1e-12


def have_same_evaluations(one: Run, other: Run) -> bool:
    """Whether two runs evaluated the same configurations and were told the same figures."""
    return one.configurations == other.configurations and np.allclose(
        one.observed, other.observed, rtol=_TOLD_TOLERANCE, atol=0.0, equal_nan=True
    )


def problem_labels(keys: Iterable[RunKey]) -> dict[tuple[str, str], str]:
    """(name, content hash) of each problem to what it is called where names alone don't tell."""
    firsts = list({(key.problem, key.content_hash): key for key in keys}.values())
    labels = _distinct(firsts, lambda key: key.problem, _BOARD_MARKS)
    return {(k.problem, k.content_hash): text for k, text in zip(firsts, labels, strict=True)}


def _board_of(key: RunKey) -> Hashable:
    return key.problem, key.content_hash, key.protocol


def _group_of(key: RunKey) -> Hashable:
    return key.optimizer, key.method, str(key.options), key.code, key.parabolt


def _board(
    label: str,
    groups: list[list[RunKey]],
    finished: dict[RunKey, Run],
    failures: dict[RunKey, FailedRun],
) -> Board:
    keys = [key for group in groups for key in group]
    ended: list[Run | FailedRun] = [finished[key] for key in keys if key in finished]
    ended += [failures[key] for key in keys if key in failures]
    first = keys[0]
    labels = _distinct([group[0] for group in groups], lambda key: key.optimizer, _GROUP_MARKS)
    return Board(
        label=label,
        problem=first.problem,
        data_version=first.data_version,
        content_hash=first.content_hash,
        protocol=first.protocol,
        optimum=next((e.optimum for e in ended if math.isfinite(e.optimum)), math.nan),
        n_gpus=max((e.n_gpus for e in ended), default=0),
        groups=tuple(
            _group(name, sorted(group, key=lambda key: key.seed), finished, failures)
            for name, group in zip(labels, groups, strict=True)
        ),
    )


def _group(
    label: str,
    keys: list[RunKey],
    finished: dict[RunKey, Run],
    failures: dict[RunKey, FailedRun],
) -> Group:
    return Group(
        label=label,
        key=keys[0],
        runs=tuple(finished[key] for key in keys if key in finished),
        failed=tuple(failures[key] for key in keys if key in failures),
        missing_seeds=tuple(
            key.seed for key in keys if key not in finished and key not in failures
        ),
    )


def _protocol_mark(name: str) -> Callable[[RunKey], str]:
    return lambda key: f"{name} {getattr(key.protocol, name)}"


#: What may tell apart what has one name, in words; those that differ are shown.
_BOARD_MARKS: tuple[Callable[[RunKey], str], ...] = (
    lambda key: f"data {key.content_hash[:8]}",
    *(_protocol_mark(field.name) for field in fields(Protocol) if field.compare),
)
_GROUP_MARKS: tuple[Callable[[RunKey], str], ...] = (
    lambda key: f"{key.method} {_words(key.options)}".strip(),
    lambda key: f"parabolt {key.parabolt}",
    lambda key: f"code {key.code[:8]}" if key.code else "",
)


def _words(options: tuple[tuple[str, Any], ...]) -> str:
    return " ".join(f"{name}={value}" for name, value in options)


def _distinct(
    keys: Sequence[RunKey],
    name_of: Callable[[RunKey], str],
    marks: Sequence[Callable[[RunKey], str]],
) -> list[str]:
    """A name for each key: its own, and in brackets what tells it from others of that name."""
    labels: list[str] = []
    for key in keys:
        others = [other for other in keys if name_of(other) == name_of(key)]
        shown = [mark(key) for mark in marks if len({mark(other) for other in others}) > 1]
        told = ", ".join(text for text in shown if text)
        label = f"{name_of(key)} [{told}]" if told else name_of(key)
        labels.append(f"{label} ({labels.count(label) + 1})" if label in labels else label)
    return labels
