"""The runs of a finished study in one small file, and those that this package brings.

A packed file is one Parquet table. Its rows are those of the run files, run after run, with one
column more: `run`, the JSON text that a run file has in its metadata. Failed runs stand in the
metadata of the table. Any Parquet reader opens it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from parabolt.documents import read_bytes
from parabolt.errors import StudyError, TableError
from parabolt.experiments.manifest import load_manifest
from parabolt.experiments.store import (
    METADATA_KEY,
    FailedRun,
    RunStore,
    failure_as_json,
    failure_from_json,
    read_parquet,
    run_from_arrow,
    run_to_arrow,
)
from parabolt.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from parabolt.experiments.run import Run

#: Column with what each row's run is.
RUN_COLUMN = "run"

_FAILED_KEY = b"parabolt.failed"


def pack_store(folder: Path, path: Path) -> int:
    """Writes the runs of a finished study into one file; returns how many.

    Args:
        folder: Directory of a study of which every run has ended.
        path: The file. The same runs give the same content.

    Raises:
        StudyError: If it is no study, or a run is missing or damaged.
        StoreError: If the file can't be written.
    """
    manifest, store = load_manifest(folder), RunStore(folder)
    if manifest is None:
        raise StudyError(f"expected a study's directory, got {folder} without a study.json")
    there = {run.key: run for run in store.load_all()}
    failed = {failure.key: failure for failure in store.load_failures()}
    if missing := [key for key in manifest.keys if key not in there and key not in failed]:
        raise StudyError(
            f"{folder}: {len(missing)} of {len(manifest.keys)} runs are missing; "
            f"try: parabolt study resume {folder}"
        )
    runs = [there[key] for key in manifest.keys if key in there]
    failures = [failed[key] for key in manifest.keys if key in failed]
    write_whole(path, _packed(runs, failures))
    return len(runs)


def read_packed(path: Path) -> tuple[list[Run], list[FailedRun]]:
    """Finished and failed runs of a packed file.

    Raises:
        TableError: If it is none, or is of a later format.
    """
    try:
        data = read_parquet(read_bytes(path))
        told = json.loads(data.schema.metadata[_FAILED_KEY])
        return list(_unpacked(data)), [failure_from_json(about) for about in told]
    except TableError as error:
        raise TableError(f"{path}: {error}") from error
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise TableError(f"{path} is no packed store of parabolt: {error!r}") from error


def published_files() -> list[Path]:
    """The packed stores that this package brings, in order of their names."""
    return sorted((Path(__file__).parent / "published").glob("*.parquet"))


def _packed(runs: list[Run], failures: list[FailedRun]) -> bytes:
    parts = []
    for run in runs:
        data = run_to_arrow(run)
        about = pa.array([data.schema.metadata[METADATA_KEY].decode()] * len(run))
        parts.append(data.replace_schema_metadata(None).append_column(RUN_COLUMN, about))
    # A run has no column for a knob that it did not search.
    whole = pa.concat_tables(parts, promote_options="default").combine_chunks()
    told = json.dumps([failure_as_json(failure) for failure in failures])
    floats = [field.name for field in whole.schema if pa.types.is_floating(field.type)]
    sink = pa.BufferOutputStream()
    pq.write_table(
        whole.replace_schema_metadata({_FAILED_KEY: told}),
        sink,
        compression="zstd",
        compression_level=19,
        use_dictionary=[name for name in whole.column_names if name not in floats],
        use_byte_stream_split=floats,
    )
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _unpacked(data: pa.Table) -> Iterator[Run]:
    about = data[RUN_COLUMN].combine_chunks().dictionary_encode()
    codes = about.indices.to_numpy()
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    rows = data.drop_columns([RUN_COLUMN])
    for start, end in zip(starts, [*starts[1:], len(codes)], strict=True):
        part = rows.slice(start, end - start)
        empty = [name for name in part.column_names if part[name].null_count == len(part)]
        told = about.dictionary[int(codes[start])].as_py()
        yield run_from_arrow(part.drop_columns(empty).replace_schema_metadata({METADATA_KEY: told}))
