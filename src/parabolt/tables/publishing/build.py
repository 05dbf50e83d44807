"""From a raw sweep export to a directory that can be published: table, card and instance."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from parabolt.errors import LockedError, OptionError, StoreError
from parabolt.files import unfinished
from parabolt.lock import Lock
from parabolt.tables.checks.verification import verify
from parabolt.tables.publishing.card_text import Publication, render_card
from parabolt.tables.publishing.provenance import Provenance
from parabolt.tables.reading.reader import VERSION_KEY, open_table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from parabolt.instances.specs import Instance
    from parabolt.tables.checks.verification import Verification
    from parabolt.tables.reading.conversion import Block

DATA_FILE, CARD_FILE, INSTANCE_FILE = "data.parquet", "README.md", "instance.toml"
_LOCK_FILE = ".lock"


def build(
    sweep: Path,
    instance: Instance,
    folder: Path,
    *,
    instance_text: str,
    version: str,
    title: str,
    license: str,  # noqa: A002 - the card's word
    provenance: Provenance | None = None,
) -> Verification:
    """Validates a raw export and writes `data.parquet`, `README.md` and `instance.toml`.

    Values are unchanged: floats bit for bit, missing, NaN and inf apart, texts as they are. Nothing
    is left behind unless everything is in order.

    Args:
        sweep: CSV (or Parquet) export.
        instance: The instance it was measured on.
        folder: Where the files go; it must not hold a table yet.
        instance_text: The instance as TOML, to be published with the table.
        version: Version of the data, as its publisher states it.
        title: Title of the card.
        license: Identifier of the licence.
        provenance: How the rows were measured; by default what stands beside the export.

    Returns:
        What was checked; if it has findings, nothing was written.

    Raises:
        LockedError: If another process is building there.
        OptionError: If the directory holds a table already.
        StoreError: If it can't be written.
        TableError: If the export, or what stands beside it, can't be read.
    """
    raw = open_table(sweep)
    provenance = provenance or Provenance.load(sweep)
    target = folder / DATA_FILE
    with _only_builder(folder):
        if target.exists():
            raise OptionError(f"{target} exists already; try another directory")
        # The table comes to its place last: where it stands, its card and its instance do, too.
        with (
            unfinished(target) as data,
            unfinished(folder / CARD_FILE) as card,
            unfinished(folder / INSTANCE_FILE) as about,
        ):
            with _Writer(data, version) as writer:
                verification = verify(raw, instance, keep=writer.write)
            if verification.findings:
                for file in (data, card, about):
                    file.unlink()
                return verification
            publication = Publication(title, license, sweep.name, provenance)
            text = render_card(
                verification.facts,
                instance,
                verification.columns,
                verification.coverage,
                publication,
            )
            card.write_text(text, encoding="utf-8")
            about.write_text(instance_text, encoding="utf-8")
    return verification


@contextmanager
def _only_builder(folder: Path) -> Iterator[None]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = Lock(folder / _LOCK_FILE, of=folder, is_lasting=False)
    except LockedError:
        raise
    except OSError as error:
        raise StoreError(f"cannot write {folder}: {error.strerror or error}") from error
    with lock:
        yield


class _Writer:
    """Writes blocks to one Parquet file, which is opened with the first of them."""

    def __init__(self, path: Path, version: str) -> None:
        self._path = path
        self._version = version
        self._file: pq.ParquetWriter | None = None

    def __enter__(self) -> _Writer:
        return self

    def write(self, block: Block) -> None:
        if self._file is None:
            schema = block.data.schema.with_metadata({VERSION_KEY: self._version})
            self._file = pq.ParquetWriter(self._path, schema)
        if block.data.num_rows:
            self._file.write_table(block.data.replace_schema_metadata(self._file.schema.metadata))

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
