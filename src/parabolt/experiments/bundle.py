"""A finished study in one file, to publish, and the check of such a file by running some again.

A bundle is a ZIP archive: `study.json`, the files of `runs` and `failed`, the tables of problems
that are not embedded, and `SHA256SUMS` of all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from parabolt.errors import StudyError
from parabolt.experiments.archive import packed_archive, unpack_archive
from parabolt.experiments.manifest import FILE_NAME, load_manifest
from parabolt.experiments.results import have_same_evaluations
from parabolt.experiments.run import execute
from parabolt.experiments.store import RunStore
from parabolt.files import write_whole
from parabolt.problems.registry import load_problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from parabolt.experiments.run import Run
    from parabolt.problems.problem import Problem


@dataclass(frozen=True)
class Bundle:
    """What was bundled.

    Attributes:
        path: The archive.
        sha256: Its hash (hex), to be published beside it.
        n_runs: Finished runs.
        n_failed: Runs that failed for good.
    """

    path: Path
    sha256: str
    n_runs: int
    n_failed: int


@dataclass(frozen=True)
class Check:
    """What running some of a bundle again gave.

    Attributes:
        n_runs: Finished runs in the bundle.
        checked: Runs that were run again, in words.
        different: Those whose evaluations differ.
    """

    n_runs: int
    checked: tuple[str, ...]
    different: tuple[str, ...]


def make_bundle(folder: Path, path: Path) -> Bundle:
    """Bundles a study of which every run has ended.

    Raises:
        StudyError: If it is no study, or runs are missing or damaged.
        StoreError: If the archive can't be written.
    """
    manifest, store = load_manifest(folder), RunStore(folder)
    if manifest is None:
        raise StudyError(f"expected a study's directory, got {folder} without a {FILE_NAME}")
    there = store.finished()
    failed = {failure.key for failure in store.load_failures()}
    missing = [k for k in manifest.keys if k.digest[:16] not in there and k not in failed]
    if missing:
        raise StudyError(
            f"{folder}: {len(missing)} of {len(manifest.keys)} runs are missing, such as "
            f"{missing[0].optimizer} on {missing[0].problem}, seed {missing[0].seed}; "
            f"try: parabolt study resume {folder}"
        )
    files = {FILE_NAME: folder / FILE_NAME}
    files |= {f"runs/{found.name}": found for found in there.values()}
    files |= {f"failed/{found.name}": found for found in (folder / "failed").glob("*.json")}
    for number, address in enumerate(manifest.study.problems):
        files |= _table_files(number, Path(address))
    contents = {name: found.read_bytes() for name, found in sorted(files.items())}
    content = packed_archive(contents)
    write_whole(path, content)
    return Bundle(path, sha256(content).hexdigest(), len(there), len(failed))


def check_bundle(path: Path, *, n_runs: int = 5, seed: int = 0) -> Check:
    """Checks the hashes of a bundle, and runs a random sample of its runs again.

    Args:
        path: The archive.
        n_runs: How many runs to run again.
        seed: Seed of the sample.

    Raises:
        StudyError: If it is no bundle, or is not what was bundled.
        TableError: If a run in it is damaged.
    """
    with TemporaryDirectory() as name:
        folder = Path(name)
        unpack_archive(path, folder)
        manifest = load_manifest(folder)
        if manifest is None:
            raise StudyError(f"{path} is no bundle of a study: it holds no {FILE_NAME}")
        problems = [
            load_problem(_bundled_table(folder, number) or address)
            for number, address in enumerate(manifest.study.problems)
        ]
        runs = RunStore(folder).load_all()
        rng = np.random.default_rng(seed)
        sample = rng.choice(len(runs), size=min(n_runs, len(runs)), replace=False)
        checked = [runs[number] for number in sorted(sample.tolist())]
        different = [run for run in checked if not _is_reproduced(run, problems)]
    return Check(len(runs), tuple(map(_words, checked)), tuple(map(_words, different)))


def _is_reproduced(run: Run, problems: Sequence[Problem]) -> bool:
    for problem in problems:
        if (problem.name, problem.content_hash) == (run.key.problem, run.key.content_hash):
            return have_same_evaluations(run, execute(problem, run.key))
    raise StudyError(f"the bundle holds no data of {run.key.problem}, hash {run.key.content_hash}")


def _words(run: Run) -> str:
    return f"{run.key.problem}, {run.key.optimizer}, seed {run.key.seed}"


def _table_files(number: int, path: Path) -> dict[str, Path]:
    """The files of an own table, and of the instance beside it; none for a name or an address."""
    if not path.exists():
        return {}
    found = sorted(path.iterdir()) if path.is_dir() else [path, path.parent / "instance.toml"]
    return {f"tables/{number}/{file.name}": file for file in found if file.is_file()}


def _bundled_table(folder: Path, number: int) -> Path | None:
    place = folder / "tables" / str(number)
    files = [f for f in sorted(place.glob("*")) if f.suffix in (".csv", ".parquet")]
    return files[0] if files else None
