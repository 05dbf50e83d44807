"""Runs on disk: one Parquet file for each that finished, one JSON file for each that failed.

A run's file has one row per evaluation with the columns of `COLUMNS` and one per knob, and says
what it is in its metadata, as JSON under `parabolt.run`. Any Parquet reader opens it. A file's name
ends with the start of the hash of the run's key, and then with that of the file's content:

    STORE/runs/PROBLEM-OPTIMIZER-SEED-KEY-CONTENT.parquet
    STORE/failed/PROBLEM-OPTIMIZER-SEED-KEY.json
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from parabolt.documents import read_bytes
from parabolt.errors import TableError
from parabolt.experiments.run import Run
from parabolt.experiments.run_key import RunKey
from parabolt.files import UNFINISHED, write_whole
from parabolt.instances.catalogue import instance_names, load_instance
from parabolt.outcome import Outcomes
from parabolt.space.configurations import Configurations

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Column to meaning, beside one column of values for each knob that isn't neutral throughout.
COLUMNS: dict[str, str] = {
    "problem": "name of the problem",
    "optimizer": "label of the optimizer",
    "seed": "seed of the run",
    "evaluation": "number of the evaluation, from 0; the initial design comes first",
    "is_initial": "whether it belongs to the initial design",
    "observed_throughput": "iterations/s as told: with noise, and where it did not run as the "
    "protocol's feedback says",
    "status": "ok, oom, or failed (memory or a crash, not recorded which)",
    "throughput": "noiseless iterations/s; NaN where it did not run",
    "peak_memory_gib": "peak memory in GiB; inf where out of memory",
    "memory_margin": "peak memory / capacity - 1; 0.2 where out of memory",
    "wall_time_s": "seconds that the measurement took; NaN where unknown",
    "throughput_source": "how the noiseless figure is known",
    "memory_source": "how the peak memory is known",
    "recommended_throughput": "noiseless iterations/s of the recommendation; 0 if infeasible",
    "step_time_s": "seconds that the optimizer took; NaN in the initial design",
    "n_failed_fits": "fits of the optimizer's model that fell back",
    "was_shortened": "whether the time limit of a proposal cut it short",
    "start_s": "when the trial began on the simulated clock, in seconds",
    "end_s": "when it ended",
}

#: Version of the layout of a run file; files of a later version are refused.
FORMAT = 2

#: Where the metadata of a run's file say what it is.
METADATA_KEY = b"parabolt.run"

_UNFIT = re.compile(r"[^\w.+-]+")
#: The hashes at the end of a run's file name.
_HASHES = re.compile(r"-([0-9a-f]{16})-([0-9a-f]{8})\.parquet$")
#: Bytes of problem and label in a file name; file systems allow 255 in all.
_MAX_NAME = 120


@dataclass(frozen=True)
class FailedRun:
    """A run that failed for good.

    Attributes:
        key: What was run.
        reason: Why, in one line.
        details: The traceback, where there is one.
        n_attempts: How often it was tried.
        optimum: Throughput of the problem's optimum, in iterations/s; NaN where unknown.
        n_gpus: GPUs that a trial occupies; 0 where unknown.
    """

    key: RunKey
    reason: str
    details: str = ""
    n_attempts: int = 1
    optimum: float = float("nan")
    n_gpus: int = 0


class RunStore:
    """A directory of runs.

    Args:
        folder: The directory; it is made when the first run is saved.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)

    def save(self, run: Run) -> Path:
        """Writes a finished run, to the disk and in one step; returns its file.

        An earlier file of the same run goes, and so does the note that it failed.

        Raises:
            StoreError: If the directory can't be written, or the disk is full.
        """
        sink = pa.BufferOutputStream()
        pq.write_table(run_to_arrow(run), sink)
        content = sink.getvalue().to_pybytes()
        path = self._runs / f"{run_name(run.key)}-{_content_hash(content)}.parquet"
        write_whole(path, content)
        for name in os.listdir(self._runs):  # noqa: PTH208 - ten thousand paths take long
            if name.startswith(run_name(run.key)) and name != path.name:
                (self._runs / name).unlink()
        self._failure_path(run.key).unlink(missing_ok=True)
        return path

    def save_failure(self, failed: FailedRun) -> None:
        """Records that a run failed for good.

        Raises:
            StoreError: If the directory can't be written, or the disk is full.
        """
        content = json.dumps(failure_as_json(failed), indent=2).encode()
        write_whole(self._failure_path(failed.key), content)

    def load(self, path: Path) -> Run:
        """Reads one run.

        Raises:
            TableError: If the file isn't a run, is not what was written, or is of a later format.
        """
        try:
            content = read_bytes(path)
        except OSError as error:
            raise TableError(f"cannot read {path}: {error.strerror}") from error
        named = _HASHES.search(path.name)
        if named and named[2] != _content_hash(content):
            raise TableError(
                f"{path} is damaged: its content is not what was written; delete it, and "
                "`parabolt study resume` runs it again"
            )
        try:
            return run_from_arrow(read_parquet(content))
        except TableError as error:
            raise TableError(f"{path}: {error}") from error
        except (
            OSError, pa.ArrowException, KeyError, TypeError, ValueError, ArithmeticError,
            AttributeError, RecursionError,
        ) as error:  # fmt: skip
            raise TableError(f"{path} is no run of parabolt: {error!r}") from error

    def load_all(self) -> list[Run]:
        """All finished runs, each once, in order of their file names.

        Raises:
            TableError: If a file isn't a run, or there is none.
        """
        runs = {run.key.digest: run for run in map(self.load, self.paths())}
        if not runs:
            raise TableError(f"expected finished runs in {self.folder}/runs, got none")
        return list(runs.values())

    def load_failures(self) -> list[FailedRun]:
        """The runs that failed for good, in order of their file names.

        Raises:
            TableError: If a file is no such record.
        """
        return [_read_failure(path) for path in sorted((self.folder / "failed").glob("*.json"))]

    def finished(self) -> dict[str, Path]:
        """Digest of the key, or its first 16 digits, to file of each run that can be read back.

        A file whose name holds its hashes is compared with them; others are read.
        """
        found = {}
        for path in self.paths():
            named = _HASHES.search(path.name)
            try:
                if not named:  # of version 0.1, or renamed
                    found[self.load(path).key.digest[:16]] = path
                elif named[2] == _content_hash(read_bytes(path)):
                    found[named[1]] = path
            except (TableError, OSError):
                continue  # damaged, or gone in the meantime
        return found

    def damaged(self) -> list[Path]:
        """Files of runs that can't be read back."""
        readable = set(self.finished().values())
        return [path for path in self.paths() if path not in readable]

    def find(self, key: RunKey) -> Path | None:
        """The file of a run, if it can be read back."""
        return self.finished().get(key.digest[:16])

    def remove(self, key: RunKey) -> None:
        """Removes the file of a run, if there is one."""
        path = self.find(key)
        if path is not None:
            path.unlink()

    def clean(self, *, is_everything: bool = False) -> int:
        """Removes unfinished files and told failures, or everything; returns how many files."""
        patterns = [f"runs/*{UNFINISHED}", "failed/*"] + (["runs/*"] if is_everything else [])
        found = (path for pattern in patterns for path in self.folder.glob(pattern))
        paths = {path for path in found if path.is_symlink() or not path.is_dir()}
        for path in paths:
            path.unlink()
        return len(paths)

    def paths(self) -> list[Path]:
        """Files of the runs, in order of their names."""
        return sorted(self._runs.glob("*.parquet"))

    @property
    def _runs(self) -> Path:
        return self.folder / "runs"

    def _failure_path(self, key: RunKey) -> Path:
        return self.folder / "failed" / f"{run_name(key)}.json"


def run_name(key: RunKey) -> str:
    """Start of a run's file name: what a person looks for, and the start of the key's hash."""
    words = _UNFIT.sub("_", f"{key.problem}-{key.optimizer}").encode()[:_MAX_NAME]
    return f"{words.decode(errors='ignore')}-{key.seed:03d}-{key.digest[:16]}"


def _content_hash(content: bytes) -> str:
    return sha256(content).hexdigest()[:8]


def _read_failure(path: Path) -> FailedRun:
    try:
        return failure_from_json(json.loads(read_bytes(path)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise TableError(f"{path} is no record of a failed run: {error!r}") from error


def failure_as_json(failed: FailedRun) -> dict[str, Any]:
    """A failed run as plain values."""
    return {**vars(failed), "format": FORMAT, "key": failed.key.as_json()}


def failure_from_json(about: Mapping[str, Any]) -> FailedRun:
    """The inverse of `failure_as_json`.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: If it is no failed run.
    """
    reason = str(about["reason"]).strip()
    lines = reason.splitlines() or [""]
    return FailedRun(
        key=RunKey.from_json(about["key"]),
        reason=lines[-1],  # version 0.1 kept the traceback there
        details=about.get("details", reason if len(lines) > 1 else ""),
        n_attempts=int(about["n_attempts"]),
        optimum=float(about.get("optimum", "nan")),
        n_gpus=int(about.get("n_gpus", 0)),
    )


def run_to_arrow(run: Run) -> pa.Table:
    """A run as a table of `COLUMNS`, with what it is in the metadata."""
    n = len(run)
    columns: dict[str, Any] = {
        "problem": np.full(n, run.key.problem),
        "optimizer": np.full(n, run.key.optimizer),
        "seed": np.full(n, run.key.seed),
        "evaluation": np.arange(n),
        "is_initial": np.arange(n) < run.n_initial,
        **run.configurations.plain(),
        "observed_throughput": run.observed,
        **run.outcomes.to_columns(),
        "recommended_throughput": run.recommended,
        "step_time_s": run.step_time_s,
        "n_failed_fits": run.n_failed_fits,
        "was_shortened": run.was_shortened,
        "start_s": run.start_s,
        "end_s": run.end_s,
    }
    about = {
        "format": FORMAT,
        "key": run.key.as_json(),
        "optimum": run.optimum,
        "n_initial": run.n_initial,
        "n_gpus": run.n_gpus,
        "environment": dict(run.environment),
    }
    return pa.table(columns).replace_schema_metadata({METADATA_KEY: json.dumps(about)})


def _gib_of_version_0_1(key: RunKey) -> float:
    """GiB of one unit of peak memory in a run of version 0.1: that of the problem's table."""
    return load_instance(key.problem).gib_per_peak_mem if key.problem in instance_names() else 1.0


def _count(name: str, value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError(f"{name}: expected a count, got {value!r}")
    return value


def read_parquet(content: bytes) -> pa.Table:
    """A Parquet file of runs, read in the calling thread alone.

    `pyarrow.parquet.read_table` starts threads of Arrow's even so. A process that ended just then
    was aborted (Arrow 18, 14 of 120 short programs on a busy machine).

    Raises:
        pyarrow.ArrowException: If it is none.
    """
    with pq.ParquetFile(pa.BufferReader(content)) as file:
        return file.read(use_threads=False)


def run_from_arrow(data: pa.Table) -> Run:
    """The inverse of `run_to_arrow`; what version 0.1 did not write is NaN.

    Raises:
        TableError: If it is of a later format.
        KeyError, TypeError, ValueError: If it is no run.
    """
    about = json.loads((data.schema.metadata or {})[METADATA_KEY])
    if about.get("format", 1) > FORMAT:
        raise TableError(
            f"expected a run of format {FORMAT} or before, got {about['format']}; "
            "try a newer parabolt"
        )
    columns = {
        name: column.to_numpy().copy()
        for name, column in zip(data.column_names, data.columns, strict=True)
    }
    key = RunKey.from_json(about["key"])
    if "peak_memory_gb" in columns:
        with np.errstate(invalid="ignore"):  # a damaged NaN stays one
            columns["peak_memory_gib"] = columns["peak_memory_gb"] * _gib_of_version_0_1(key)
    unknown = np.full(data.num_rows, np.nan)
    return Run(
        key=key,
        optimum=float(about["optimum"]),
        n_initial=_count("n_initial", about["n_initial"]),
        configurations=Configurations.from_plain(columns, data.num_rows),
        observed=columns["observed_throughput"],
        outcomes=Outcomes.from_columns(columns),
        recommended=columns["recommended_throughput"],
        step_time_s=columns["step_time_s"],
        n_failed_fits=columns["n_failed_fits"],
        was_shortened=columns["was_shortened"],
        start_s=columns.get("start_s", unknown),
        end_s=columns.get("end_s", unknown),
        n_gpus=_count("n_gpus", about.get("n_gpus", 0)),
        environment=dict(about.get("environment", {})),
    )
