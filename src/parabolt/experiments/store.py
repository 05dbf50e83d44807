"""Finished runs on disk: one Parquet file each, written whole or not at all.

A file has one row per evaluation with the columns of `COLUMNS` and one per knob, and says what it
is in its metadata, as JSON under `parabolt.run`. Any Parquet reader opens it.

    STORE/runs/PROBLEM-OPTIMIZER-SEED.parquet     finished runs
    STORE/failed/PROBLEM-OPTIMIZER-SEED.json      runs that failed for good, and why
"""

from __future__ import annotations

import errno
import json
import os
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from parabolt.errors import OptionError, StoreError, TableError
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.run import Run, RunKey
from parabolt.outcome import Outcomes
from parabolt.space.knobs import KNOBS

#: Column to meaning, beside one column of raw sizes for each knob.
COLUMNS: dict[str, str] = {
    "evaluation": "number of the evaluation, from 0; the initial design comes first",
    "is_initial": "whether it belongs to the initial design",
    "observed_throughput": "iterations/s as told: with noise, and imputed where it did not run",
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
}

#: Version of the layout of a run file; files of a later version are refused.
FORMAT = 1

_KEY = b"parabolt.run"
_UNFIT = re.compile(r"[^\w.+-]+")


class RunStore:
    """A directory of finished runs.

    Args:
        folder: The directory; made when the first run is saved.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def path(self, key: RunKey) -> Path:
        """Where the run of `key` stands, or would stand."""
        return self.folder / "runs" / f"{run_name(key)}.parquet"

    def failure_path(self, key: RunKey) -> Path:
        """Where the failure of `key` is told, if it failed."""
        return self.folder / "failed" / f"{run_name(key)}.json"

    def save(self, run: Run) -> Path:
        """Writes a finished run, to the disk and in one step.

        Raises:
            StoreError: If the directory can't be written, or the disk is full.
        """
        sink = pa.BufferOutputStream()
        pq.write_table(_to_arrow(run), sink)
        path = self.path(run.key)
        write_whole(path, sink.getvalue().to_pybytes())
        self.failure_path(run.key).unlink(missing_ok=True)
        return path

    def save_failure(self, key: RunKey, reason: str, n_attempts: int) -> None:
        """Records that a run failed for good.

        Raises:
            StoreError: If the directory can't be written, or the disk is full.
        """
        about = {"key": asdict(key), "n_attempts": n_attempts, "reason": reason}
        write_whole(self.failure_path(key), json.dumps(about, indent=2).encode())

    def load(self, path: Path) -> Run:
        """Reads one run.

        Raises:
            TableError: If the file isn't a run, or of a later format.
        """
        try:
            data = pq.ParquetFile(path).read(use_threads=False)
            about = json.loads((data.schema.metadata or {})[_KEY])
            found = about.get("format", 1)
        except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
            raise TableError(f"{path} is no run of parabolt: {error}") from error
        if found > FORMAT:
            raise TableError(
                f"{path}: expected a run of format {FORMAT} or before, got {found}; "
                "try a newer parabolt"
            )
        try:
            return _from_arrow(data, about)
        except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
            raise TableError(f"{path} is no run of parabolt: {error!r}") from error

    def load_all(self) -> list[Run]:
        """All finished runs, in order of their file names.

        Raises:
            TableError: If a file isn't a run, or there is none.
        """
        paths = sorted((self.folder / "runs").glob("*.parquet"))
        if not paths:
            raise TableError(f"expected finished runs in {self.folder}/runs, got none")
        return [self.load(path) for path in paths]

    def finished(self) -> set[str]:
        """Names of the finished runs, without opening them."""
        return _stems(self.folder / "runs", ".parquet")

    def failed(self) -> set[str]:
        """Names of the runs that failed for good."""
        return _stems(self.folder / "failed", ".json")

    def has(self, key: RunKey) -> bool:
        """Whether the run of `key` is there.

        Raises:
            OptionError: If another run stands in its place, of other data or another protocol.
        """
        path = self.path(key)
        if not path.exists():
            return False
        if self.load(path).key != key:
            raise OptionError(
                f"{path} holds a run of other data, options or another protocol; "
                "try another directory"
            )
        return True

    def clean(self, *, is_everything: bool = False) -> int:
        """Removes unfinished files and told failures, or everything; returns how many files."""
        patterns = ["runs/*.tmp", "failed/*"] + (["runs/*.parquet"] if is_everything else [])
        paths = [path for pattern in patterns for path in self.folder.glob(pattern)]
        for path in paths:
            path.unlink()
        return len(paths)


def run_name(key: RunKey) -> str:
    """File name of a run, without its ending."""
    return _UNFIT.sub("_", f"{key.problem}-{key.optimizer}-{key.seed:03d}")


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file so that it is there whole or not at all, also after a power cut.

    Raises:
        StoreError: If it can't be written.
    """
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with unfinished.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        except OSError:
            unfinished.unlink(missing_ok=True)
            raise
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise StoreError(
                f"no space left for {path}; finished runs are safe: free some space and resume"
            ) from error
        raise StoreError(f"cannot write {path}: {error.strerror}") from error


def _stems(folder: Path, ending: str) -> set[str]:
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries]
    except FileNotFoundError:
        return set()
    return {name.removesuffix(ending) for name in names if name.endswith(ending)}


def _to_arrow(run: Run) -> pa.Table:
    n = len(run)
    columns: dict[str, Any] = {
        "evaluation": np.arange(n),
        "is_initial": np.arange(n) < run.n_initial,
        **{name: run.sizes[:, i] for i, name in enumerate(KNOBS)},
        "observed_throughput": run.observed,
        **run.outcomes.to_columns(),
        "recommended_throughput": run.recommended,
        "step_time_s": run.step_time_s,
        "n_failed_fits": run.n_failed_fits,
        "was_shortened": run.was_shortened,
    }
    about = {
        "format": FORMAT,
        "key": asdict(run.key),
        "optimum": run.optimum,
        "n_initial": run.n_initial,
    }
    return pa.table(columns).replace_schema_metadata({_KEY: json.dumps(about)})


def _from_arrow(data: pa.Table, about: dict[str, Any]) -> Run:
    key = about["key"]
    options = tuple((name, value) for name, value in key["options"])
    columns = {
        name: column.to_numpy().copy()
        for name, column in zip(data.column_names, data.columns, strict=True)
    }
    if "peak_memory_gb" in columns:  # version 0.1, in the unit of the problem's table
        columns["peak_memory_gib"] = columns["peak_memory_gb"]
    return Run(
        key=RunKey(**{**key, "protocol": Protocol(**key["protocol"]), "options": options}),
        optimum=about["optimum"],
        n_initial=about["n_initial"],
        sizes=np.stack([columns[name] for name in KNOBS], axis=1),
        observed=columns["observed_throughput"],
        outcomes=Outcomes.from_columns(columns),
        recommended=columns["recommended_throughput"],
        step_time_s=columns["step_time_s"],
        n_failed_fits=columns["n_failed_fits"],
        was_shortened=columns["was_shortened"],
    )
