"""Finished runs on disk: one Parquet file each, written whole or not at all.

A file has one row per evaluation with the columns of `COLUMNS`, and its key as JSON in the file's
metadata under `parabolt.run`. Any Parquet reader opens it.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from parabolt.errors import OptionError, TableError
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.run import Run, RunKey
from parabolt.outcome import SOURCES, STATUSES, Outcomes, Source, Status
from parabolt.space.configuration import Configuration
from parabolt.space.knobs import KNOBS

if TYPE_CHECKING:
    from parabolt.outcome import CodeArray

#: Column to meaning, beside one column of raw sizes for each knob.
COLUMNS: dict[str, str] = {
    "evaluation": "number of the evaluation, from 0; the initial design comes first",
    "is_initial": "whether it belongs to the initial design",
    "observed_throughput": "iterations/s as told: with noise, and imputed where out of memory",
    "throughput": "noiseless iterations/s; NaN where out of memory",
    "throughput_source": "how the noiseless figure is known",
    "status": "ok or oom",
    "peak_memory_gb": "peak memory in GB; inf where out of memory",
    "memory_source": "how the peak memory is known",
    "memory_margin": "peak memory / capacity - 1; 0.2 where out of memory",
    "recommended_throughput": "noiseless iterations/s of the recommendation; 0 if infeasible",
    "step_time_s": "seconds that the optimizer took; NaN in the initial design",
}

_KEY = b"parabolt.run"


class RunStore:
    """A directory of finished runs.

    Args:
        folder: The directory; made when the first run is saved.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def path(self, key: RunKey) -> Path:
        """Where the run of `key` stands, or would stand."""
        return self.folder / "runs" / f"{key.problem}-{key.optimizer}-{key.seed:03d}.parquet"

    def save(self, run: Run) -> Path:
        """Writes a finished run; a file of that name is replaced in one step.

        Raises:
            OptionError: If the directory can't be written.
        """
        path = self.path(run.key)
        unfinished = path.with_suffix(f".{os.getpid()}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(_to_arrow(run), unfinished)
            unfinished.replace(path)
        except OSError as error:
            raise OptionError(f"cannot write runs to {self.folder}: {error}") from error
        return path

    def load(self, path: Path) -> Run:
        """Reads one run.

        Raises:
            TableError: If the file isn't a run.
        """
        try:
            return _from_arrow(pq.ParquetFile(path).read(use_threads=False))
        except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
            raise TableError(f"{path} is no run of parabolt: {error}") from error

    def has(self, key: RunKey) -> bool:
        """Whether the run of `key` is there.

        Raises:
            OptionError: If another run stands in its place, of other data or another protocol.
        """
        path = self.path(key)
        if not path.exists():
            return False
        found = self.load(path).key
        if found != key:
            raise OptionError(
                f"{path} holds a run of other data or another protocol; try another directory"
            )
        return True


def _to_arrow(run: Run) -> pa.Table:
    n, outcomes = len(run), run.outcomes
    columns: dict[str, Any] = {
        "evaluation": np.arange(n),
        "is_initial": np.arange(n) < run.n_initial,
        **{name: [getattr(c, name) for c in run.configurations] for name in KNOBS},
        "observed_throughput": run.observed,
        "throughput": outcomes.throughput,
        "throughput_source": [str(SOURCES[code]) for code in outcomes.throughput_source],
        "status": [str(STATUSES[code]) for code in outcomes.status],
        "peak_memory_gb": outcomes.peak_memory_gb,
        "memory_source": [str(SOURCES[code]) for code in outcomes.memory_source],
        "memory_margin": outcomes.memory_margin,
        "recommended_throughput": run.recommended,
        "step_time_s": run.step_time_s,
    }
    about = {"key": asdict(run.key), "optimum": run.optimum, "n_initial": run.n_initial}
    return pa.table(columns).replace_schema_metadata({_KEY: json.dumps(about)})


def _from_arrow(data: pa.Table) -> Run:
    about = json.loads(data.schema.metadata[_KEY])
    key = about["key"]
    floats = {
        name: data.column(name).to_numpy()
        for name in COLUMNS
        if pa.types.is_floating(data.schema.field(name).type)
    }
    sizes = zip(*(data.column(name).to_pylist() for name in KNOBS), strict=True)
    return Run(
        key=RunKey(**{**key, "protocol": Protocol(**key["protocol"])}),
        optimum=about["optimum"],
        n_initial=about["n_initial"],
        configurations=tuple(Configuration(**dict(zip(KNOBS, row, strict=True))) for row in sizes),
        observed=floats["observed_throughput"],
        outcomes=Outcomes(
            status=_codes(data, "status", STATUSES),
            throughput=floats["throughput"].copy(),
            peak_memory_gb=floats["peak_memory_gb"].copy(),
            memory_margin=floats["memory_margin"].copy(),
            wall_time_s=np.full(data.num_rows, np.nan),
            throughput_source=_codes(data, "throughput_source", SOURCES),
            memory_source=_codes(data, "memory_source", SOURCES),
        ),
        recommended=floats["recommended_throughput"],
        step_time_s=floats["step_time_s"],
    )


def _codes(data: pa.Table, name: str, words: tuple[Status, ...] | tuple[Source, ...]) -> CodeArray:
    number = {str(word): code for code, word in enumerate(words)}
    return np.array([number[text] for text in data.column(name).to_pylist()], dtype=np.uint8)
