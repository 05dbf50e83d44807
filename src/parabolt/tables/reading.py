"""Raw batches of a table from a CSV or Parquet file: nothing converted, nothing kept in memory."""

from __future__ import annotations

import codecs
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from parabolt.errors import TableError
from parabolt.tables.findings import FindingGroup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from parabolt.outcome import IntArray

VERSION_KEY = b"parabolt.version"
UNVERSIONED = "unversioned"

_CSV_BLOCK_BYTES = 1 << 24
_PARQUET_BATCH_ROWS = 1 << 18


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
    """

    path: Path
    schema: pa.Schema
    version: str
    batches: Callable[[], Iterator[RawBatch]]

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
        schema = file.schema_arrow
    version = (schema.metadata or {}).get(VERSION_KEY, UNVERSIONED.encode())
    return RawTable(path, schema, version.decode(errors="replace"), batches)


def open_csv(path: Path) -> RawTable:
    """Opens a CSV file. See `open_table`."""
    with _reading(path), _csv_reader(path, [], lambda _: "skip") as reader:
        names = reader.schema.names

    def batches() -> Iterator[RawBatch]:
        yield RawBatch(schema.empty_table(), np.arange(0))
        odd: list[pa.csv.InvalidRow] = []

        def note(row: pa.csv.InvalidRow) -> str:
            odd.append(row)
            return "skip"

        start = 0
        with _reading(path), _csv_reader(path, names, note) as reader:
            for batch in reader:
                skipped = {row.number - 2 for row in odd}  # the header is number 1
                rows = np.arange(start, start + batch.num_rows + len(skipped))
                rows = rows[~np.isin(rows, list(skipped))][: batch.num_rows]
                start = int(rows[-1]) + 1 if len(rows) else start
                yield RawBatch(pa.Table.from_batches([batch]), rows)
        yield RawBatch(schema.empty_table(), np.arange(0), tuple(_odd_rows(odd)))

    schema = pa.schema([(name, pa.string()) for name in names])
    return RawTable(path, schema, UNVERSIONED, batches)


@contextmanager
def _csv_reader(
    path: Path, names: list[str], note: Callable[[pa.csv.InvalidRow], str]
) -> Iterator[pa.csv.CSVStreamingReader]:
    file = _Utf8File(path)
    reader = pa.csv.open_csv(
        file,
        # Only a single thread knows the number of a row that isn't as wide as the header.
        read_options=pa.csv.ReadOptions(use_threads=False, block_size=_CSV_BLOCK_BYTES),
        parse_options=pa.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=note),
        convert_options=pa.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    try:
        yield reader
    finally:
        # Arrow reads ahead in a thread that needs the interpreter; a reader that goes before that
        # thread has ended holds the interpreter and waits for it: with Arrow 14, for ever.
        file.is_ended = True
        with suppress(OSError, UnicodeDecodeError, pa.ArrowException):
            deque(reader, maxlen=0)


def _odd_rows(odd: list[pa.csv.InvalidRow]) -> Iterator[FindingGroup]:
    if odd:
        rows = np.array([row.number - 2 for row in odd], dtype=np.int64)
        widths = [(f"{r.expected_columns} cells", str(r.actual_columns)) for r in odd]
        yield FindingGroup("row_width", "", rows, lambda i: widths[i])


class _Utf8File:
    """A file whose bytes are checked to be UTF-8 as they are read.

    Arrow's CSV reader meets other bytes only where it hands a row to Python, and drops the error.

    Attributes:
        is_ended: Whether the file is to give nothing more.
    """

    def __init__(self, path: Path) -> None:
        self.is_ended = False
        self._file = path.open("rb")
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    @property
    def closed(self) -> bool:
        return self._file.closed

    def read(self, size: int = -1) -> bytes:
        content = b"" if self.is_ended else self._file.read(size)
        self._decoder.decode(content, final=not content)
        return content

    def close(self) -> None:
        self._file.close()


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise TableError(f"cannot read {path}: {error}") from error
