"""Raw batches of a table from a CSV or Parquet file: nothing converted, nothing kept in memory."""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from parabolt.documents import check_regular
from parabolt.errors import TableError
from parabolt.tables.checks.findings import FindingGroup
from parabolt.tables.reading.csv_blocks import csv_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from parabolt.instances.specs import Instance
    from parabolt.outcome import IntArray

VERSION_KEY = b"parabolt.version"
UNVERSIONED = "unversioned"

_CSV_HEADER_BYTES = 1 << 16
_CSV_BLOCK_BYTES = 1 << 24
_PARQUET_BATCH_ROWS = 1 << 18
#: So many rows for each configuration are read, and told as repeats; more are no table.
_MOST_REPEATS = 1_000


@dataclass(frozen=True, eq=False)
class RawBatch:
    """Some rows of a file as it has them.

    Attributes:
        data: The columns: texts from a CSV file, the file's own types from Parquet.
        rows: Row numbers (n,) int64, from 0.
        findings: Rows that were not the width of the header; they are not in `data`.
    """

    data: pa.Table
    rows: IntArray
    findings: tuple[FindingGroup, ...] = ()


@dataclass(frozen=True, eq=False)
class RawTable:
    """A file that holds a table.

    Attributes:
        path: The file.
        schema: Names and types of its columns.
        version: Version of the data as its publisher states it.
        batches: Reads the rows; each call starts anew. Raises TableError where the file ends the
            reading.
        n_rows: Rows, where the file says so beforehand.
    """

    path: Path
    schema: pa.Schema
    version: str
    batches: Callable[[], Iterator[RawBatch]]
    n_rows: int | None = None

    def check_length(self, instance: Instance) -> None:
        """Raises `TableError` where there are far more rows than an instance has configurations.

        A few kilobytes of Parquet may hold a billion equal rows.
        """
        n = math.prod(len(values) for _, values in instance.levels)
        if self.n_rows is not None and self.n_rows > _MOST_REPEATS * n:
            raise TableError(
                f"{self.path}: expected a row for each of at most {n} configurations of "
                f"{instance.name}, got {self.n_rows} rows"
            )

    def read(self) -> pa.Table:
        """All rows in memory.

        Raises:
            TableError: If the file can't be read, or a row isn't as wide as the header.
        """
        batches = list(self.batches())
        for batch in batches:
            for group in batch.findings:
                raise TableError(str(next(iter(group))))
        return pa.concat_tables(batch.data for batch in batches)


def open_table(path: Path) -> RawTable:
    """Opens a CSV or Parquet file, as its suffix says.

    A CSV file is UTF-8, with or without byte-order mark, LF or CRLF; an unquoted blank is a missing
    value, a quoted one an empty text.

    Raises:
        TableError: If it can't be read or is of another kind.
    """
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise TableError(f"{path}: expected a .csv or .parquet file, got {suffix or 'no suffix'}")
    return open_csv(path) if suffix == ".csv" else open_parquet(path)


def open_parquet(path: Path) -> RawTable:
    """Opens a Parquet file. See `open_table`."""

    def batches() -> Iterator[RawBatch]:
        start = 0
        with _reading(path), pq.ParquetFile(path) as file:
            yield RawBatch(file.schema_arrow.empty_table(), np.arange(0))
            for batch in file.iter_batches(_PARQUET_BATCH_ROWS, use_threads=False):
                rows = np.arange(start, start + batch.num_rows)
                start += batch.num_rows
                data = pa.Table.from_batches([batch])
                data.validate(full=True)  # texts of a damaged file need not be UTF-8
                yield RawBatch(data, rows)

    with _reading(path), pq.ParquetFile(path) as file:
        schema, n_rows = file.schema_arrow, file.metadata.num_rows
    version = (schema.metadata or {}).get(VERSION_KEY, UNVERSIONED.encode())
    return RawTable(path, schema, version.decode(errors="replace"), batches, n_rows)


def open_csv(path: Path) -> RawTable:
    """Opens a CSV file. See `open_table`."""
    with _reading(path):
        beginning = next(csv_blocks(path, _CSV_HEADER_BYTES))
        names = _parsed(beginning, [], lambda _: "skip").column_names
    schema = pa.schema([(name, pa.string()) for name in names])

    def batches() -> Iterator[RawBatch]:
        yield RawBatch(schema.empty_table(), np.arange(0))
        start = 0
        with _reading(path):
            for block in csv_blocks(path, _CSV_BLOCK_BYTES):
                batch = _csv_batch(block, names, start)
                yield batch
                start += len(batch.rows) + sum(len(group) for group in batch.findings)

    return RawTable(path, schema, UNVERSIONED, batches)


def _csv_batch(block: bytes, names: list[str], start: int) -> RawBatch:
    """The rows of a block whose first one has the number `start`."""
    odd: list[pa.csv.InvalidRow] = []

    def note(row: pa.csv.InvalidRow) -> str:
        odd.append(row)
        return "skip"

    data = _parsed(block, names, note)
    odd_rows = np.array([row.number - 2 for row in odd], dtype=np.int64)  # the header is number 1
    rows = np.delete(np.arange(data.num_rows + len(odd)), odd_rows)
    widths = [(f"{row.expected_columns} cells", str(row.actual_columns)) for row in odd]
    found = FindingGroup("row_width", "", start + odd_rows, lambda i: widths[i])
    return RawBatch(data, start + rows, (found,) if odd else ())


def _parsed(block: bytes, names: list[str], note: Callable[[pa.csv.InvalidRow], str]) -> pa.Table:
    return pa.csv.read_csv(
        pa.BufferReader(block),
        # Only a single thread knows the number of a row that isn't as wide as the header.
        read_options=pa.csv.ReadOptions(use_threads=False, block_size=max(1, len(block))),
        parse_options=pa.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=note),
        convert_options=pa.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        check_regular(path)
        yield
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise TableError(f"cannot read {path}: {error}") from error
