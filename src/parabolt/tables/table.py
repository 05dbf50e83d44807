"""A table: the measured outcomes of an instance's candidates, checked as it is read."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from parabolt.errors import TableError
from parabolt.files import unfinished
from parabolt.instances.search_space import SearchSpace
from parabolt.outcome import OK, OOM, OOM_MARGIN, SOURCES, Outcomes, Source
from parabolt.tables.checks.validation import validate
from parabolt.tables.reading.reader import UNVERSIONED, VERSION_KEY, open_csv, open_parquet
from parabolt.tables.reading.status import run_status
from parabolt.tables.schema import NOT_MEASURED

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from parabolt.instances.specs import Instance
    from parabolt.outcome import BoolArray, CodeArray, FloatArray, IntArray


class Table:
    """Measured outcomes of an instance's candidates, one row each, in the order of the file.

    Args:
        data: The columns, typed by the schema.
        instance: The instance they were measured on.
        version: Version of the data, as its publisher states it.

    Raises:
        TableError: At the first contradiction of the schema, with row and column. Rows count from
            0, the first after the header.
    """

    def __init__(self, data: pa.Table, instance: Instance, *, version: str = UNVERSIONED) -> None:
        self.data, configurations = validate(data, instance)
        self.instance = instance
        self.version = version
        self.space = SearchSpace(instance, instance.encoding.encode(configurations))

    @classmethod
    def from_csv(
        cls, path: str | os.PathLike[str], instance: Instance, *, version: str = UNVERSIONED
    ) -> Table:
        """Reads a raw sweep export. See `Table` for the errors."""
        return cls(open_csv(Path(path)).read(), instance, version=version)

    @classmethod
    def from_parquet(cls, path: str | os.PathLike[str], instance: Instance) -> Table:
        """Reads a Parquet file, as `to_parquet` or anyone else wrote it. See `Table`."""
        raw = open_parquet(Path(path))
        raw.check_length(instance)
        return cls(raw.read(), instance, version=raw.version)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Writes the columns as CSV; `from_csv` gives back every value, bit for bit.

        A missing value is a blank, an empty text is `""`.

        Raises:
            TableError: If a column that the schema doesn't know holds lists or the like.
            StoreError: If the file can't be written.
        """
        with _writing(path) as file:
            # One chunk: before Arrow 24 an empty one repeats what was written before (GH-36889).
            pyarrow.csv.write_csv(self.data.combine_chunks(), file)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Writes the columns unchanged, with the version in the file's metadata.

        Raises:
            StoreError: If the file can't be written.
        """
        with _writing(path) as file:
            pq.write_table(self.data.replace_schema_metadata({VERSION_KEY: self.version}), file)

    def __len__(self) -> int:
        return len(self.space)

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (self.data, self.instance, self.version)

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 (hex) of all columns by name, type and value, whatever their order.

        Null and NaN are the same, and so are null and an empty text.
        """
        digest = hashlib.sha256()
        for name in sorted(self.data.column_names):
            column = self.data.column(name)
            digest.update(f"{name}:{column.type}:".encode())
            if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
                for chunk in column.fill_null("").chunks:
                    digest.update("".join(map(repr, chunk.to_pylist())).encode())
                continue
            values = np.ascontiguousarray(column.to_numpy())
            if values.dtype.kind == "f":
                values = np.where(np.isnan(values), np.nan, values)
            is_plain = not values.dtype.hasobject
            digest.update(values.tobytes() if is_plain else repr(values.tolist()).encode())
        return digest.hexdigest()

    @property
    def codes(self) -> IntArray:
        """Codes (n,) int64 of the configurations; see `Encoding`."""
        return self.instance.encoding.codes(self.space.encoded)

    @property
    def is_feasible(self) -> BoolArray:
        """Whether each row's run finished, (n,) bool."""
        return self.outcomes.is_feasible

    @cached_property
    def outcomes(self) -> Outcomes:
        """All rows as outcomes; the margin is the recorded one where the table has it."""
        status, peak = run_status(self.data), self._floats("peak_mem")
        feasible = np.equal(status, OK)
        return Outcomes(
            status=status,
            throughput=self._floats("throughput_mean"),
            peak_memory_gib=peak * self.instance.gib_per_peak_mem,
            memory_margin=self._margins(status, peak),
            wall_time_s=self._floats("overall_time"),
            throughput_source=self._sources("source_throughput", feasible),
            memory_source=self._sources("source_memory", feasible),
        )

    def _margins(self, status: CodeArray, peak: FloatArray) -> FloatArray:
        if "peak_mem_normalised" in self.data.column_names:
            return self._floats("peak_mem_normalised")
        margin = peak / self.instance.peak_mem_column.capacity - 1.0
        return np.where(np.equal(status, OOM), OOM_MARGIN, margin)

    def _sources(self, name: str, feasible: BoolArray) -> CodeArray:
        codes = np.where(feasible, SOURCES.index(Source.MEASURED), SOURCES.index(Source.NONE))
        if name in self.data.column_names:
            words = np.array(self.data.column(name).to_pylist(), dtype=object)
            for word, source in NOT_MEASURED.items():
                codes[feasible & (words == word)] = SOURCES.index(source)
        return codes.astype(np.uint8)

    def _floats(self, name: str) -> FloatArray:
        if name not in self.data.column_names:
            return np.full(self.data.num_rows, np.nan)
        return np.asarray(self.data.column(name).to_numpy(), dtype=np.float64)


def _restore(data: pa.Table, instance: Instance, version: str) -> Table:
    return Table(data, instance, version=version)


@contextmanager
def _writing(path: str | os.PathLike[str]) -> Iterator[Path]:
    try:
        with unfinished(Path(path)) as file:
            yield file
    except pa.ArrowException as error:
        raise TableError(f"cannot write the table to {path}: {error}") from error
