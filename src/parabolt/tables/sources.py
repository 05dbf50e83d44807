"""Where tables come from: embedded by name, a file, a directory with a card, or the Hub."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from parabolt.documents import is_there, read_text
from parabolt.errors import InstanceError, OptionError, TableError, UnknownNameError
from parabolt.instances.catalogue import instance_names, load_instance, parse_instance
from parabolt.tables.checks.findings import TableFindings
from parabolt.tables.checks.verification import Verification, check_card, check_coverage, verify
from parabolt.tables.publishing.build import CARD_FILE, INSTANCE_FILE
from parabolt.tables.publishing.card import parse_card
from parabolt.tables.publishing.facts import TableFacts
from parabolt.tables.publishing.hub import PREFIX, PUBLISHED, HubAddress, fetch
from parabolt.tables.reading.conversion import convert
from parabolt.tables.reading.reader import open_table
from parabolt.tables.schema import known_context, meaning_of_absence, shape_columns
from parabolt.tables.table import Table

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from parabolt.instances.specs import Instance
    from parabolt.tables.publishing.card import Card
    from parabolt.tables.reading.reader import RawTable

#: Which data a built-in name can stand for.
DATA_SOURCES: tuple[str, ...] = ("embedded", "hub")

#: Tables of the Ultra-Scale Playbook's sweep: 1B, 8B and 80B models on 1 to 64 hosts of 8 GPUs.
USCALE: tuple[str, ...] = tuple(
    f"uscale-{model}-{n_gpus}"
    for model in ("1b", "8b", "80b")
    for n_gpus in (8, 16, 32, 64, 128, 256, 512)
)

#: Embedded tables, by the name of their instance.
EMBEDDED: tuple[str, ...] = ("pco32", "pco64", "pco4-cpu", *USCALE)

#: Embedded tables without a run that finished: there is nothing to search.
WITHOUT_OPTIMUM: tuple[str, ...] = ("uscale-80b-8", "uscale-80b-16")
#: Where the Parquet file of a data set may be: beside the card, or at most two folders below it. A
#: folder that is none may hold a whole file system.
_DEPTHS = ("", "*/", "*/*/")


@dataclass(frozen=True, eq=False)
class LocatedTable:
    """A table that was found, but not yet believed.

    Attributes:
        raw: The file.
        instance: The instance that it is to be checked against.
        instance_origin: How that was found, in words.
        card: Its card; None where there is none.
        version: Version of the data.
    """

    raw: RawTable
    instance: Instance
    instance_origin: str
    card: Card | None
    version: str

    def verify(self) -> Verification:
        """Checks the table against schema, itself and card; see `tables/checks/`."""
        return verify(self.raw, self.instance, card=self.card)

    def load(self) -> Table:
        """The table, believed only if it keeps the schema and its card's figures are its own.

        Raises:
            TableError: At the first contradiction.
        """
        self.raw.check_length(self.instance)
        table = Table(self.raw.read(), self.instance, version=self.version)
        if self.card:
            block = convert(table.data, np.arange(len(table)), self.instance)
            facts = TableFacts.of(block, self.instance)
            columns = tuple(table.data.column_names)
            groups = [
                *check_card(self.card, facts, columns, self.instance),
                *check_coverage(self.card, self.instance, table.codes),
            ]
            findings = TableFindings(groups)
            if findings:
                raise TableError(
                    f"{self.raw.path} contradicts its card: {findings.first(1)[0]} (one of "
                    f"{len(findings)} findings; try: parabolt table verify)"
                )
        return table


def load_table(
    table: str | os.PathLike[str],
    *,
    instance: Instance | None = None,
    source: str = "embedded",
) -> Table:
    """A table by name, path or address, checked as it is read.

    Args:
        table: An embedded name; a CSV or Parquet file; a directory with one Parquet file and
            perhaps a card (`README.md`) and an `instance.toml`; or `hub:ORG/NAME@REVISION`.
        instance: The instance of a file, directory or address; by default the `instance.toml`
            beside it, else the built-in instance whose context its first row states.
        source: Which data a built-in name stands for: `embedded`, or `hub` for the original
            (downloaded once, then from the cache).

    Raises:
        UnknownNameError: If no table of that name is known.
        OptionError: If the source or the address is of another form.
        InstanceError: If the instance of a file can't be told.
        TableError: If it can't be read or fetched, or contradicts the schema or its card.
    """
    name = os.fspath(table)
    if name in EMBEDDED and source == "embedded" and instance is None:
        with _embedded(name) as path:
            return Table.from_parquet(path, load_instance(name))
    return locate(table, instance=instance, source=source).load()


def locate(
    table: str | os.PathLike[str],
    *,
    instance: Instance | None = None,
    source: str = "embedded",
) -> LocatedTable:
    """Finds a table, its instance and its card, without checking it. See `load_table`."""
    if source not in DATA_SOURCES:
        raise OptionError(f"source: expected {' or '.join(DATA_SOURCES)}, got {source!r}")
    name = os.fspath(table)
    if name in EMBEDDED and source == "embedded":
        with _embedded(name) as path:
            raw = open_table(path)
        return LocatedTable(raw, instance or load_instance(name), "by name", None, raw.version)
    if name in PUBLISHED:
        if source == "hub":
            return _on_hub(PUBLISHED[name], instance or load_instance(name))
        raise UnknownNameError(
            f"{name} is a known instance without an embedded table: expected one of "
            f"{', '.join(EMBEDDED)}; try {PUBLISHED[name]}"
        )
    if name.startswith(PREFIX):
        return _on_hub(HubAddress.parse(name), instance)
    if is_name(name):
        raise UnknownNameError.of("table", name, EMBEDDED)
    path = Path(name)
    if path.is_dir():
        return _in_folder(path, instance)
    return _with_instance(path, path.parent, instance)


def is_name(table: str | os.PathLike[str]) -> bool:
    """Whether that is a name, rather than an address or a path."""
    name = os.fspath(table)
    is_file = Path(name).suffix.lower() in (".csv", ".parquet") or is_there(name)
    return name in {*PUBLISHED, *EMBEDDED} or not (
        name.startswith(PREFIX) or is_file or os.sep in name
    )


def _embedded(name: str) -> AbstractContextManager[Path]:
    return resources.as_file(resources.files("parabolt.tables") / "embedded" / f"{name}.parquet")


def _on_hub(address: HubAddress, instance: Instance | None) -> LocatedTable:
    snapshot = fetch(address)
    return _in_folder(snapshot.folder, instance, version=snapshot.version)


def _in_folder(
    folder: Path, instance: Instance | None, *, version: str | None = None
) -> LocatedTable:
    files = sorted(file for depth in _DEPTHS for file in folder.glob(f"{depth}*.parquet"))
    if len(files) != 1:
        names = ", ".join(file.name for file in files) or "none"
        raise TableError(f"{folder}: expected one Parquet file, got {names}")
    card, path = None, folder / CARD_FILE
    if path.exists():
        card = parse_card(read_text(path, "card", TableError), origin=str(path))
    return _with_instance(files[0], folder, instance, card=card, version=version)


def _with_instance(
    path: Path,
    folder: Path,
    instance: Instance | None,
    *,
    card: Card | None = None,
    version: str | None = None,
) -> LocatedTable:
    raw = open_table(path)
    beside, origin = folder / INSTANCE_FILE, "as given"
    if instance is None and beside.exists():
        text = read_text(beside, "instance file", InstanceError)
        instance, origin = parse_instance(text, origin=str(beside)), INSTANCE_FILE
    elif instance is None:
        instance, origin = _by_context(raw), "built-in, by the context columns"
    return LocatedTable(raw, instance, origin, card, version or raw.version)


def _by_context(raw: RawTable) -> Instance:
    """The built-in instance whose context the first row states."""
    for name in instance_names():
        instance = load_instance(name)
        knobs = {axis.column for axis in instance.encoding.axes}
        if not (set(shape_columns(instance)) | knobs) <= set(raw.schema.names):
            continue
        stated = _first_row(raw, instance)
        unsaid = meaning_of_absence(instance)
        wanted = known_context(instance)
        if all(stated.get(column, unsaid.get(column)) == wanted[column] for column in wanted):
            return instance
    raise InstanceError(
        f"{raw.path}: expected an {INSTANCE_FILE} beside it or the context of one of "
        f"{', '.join(instance_names())}; try --instance INSTANCE.toml"
    )


def _first_row(raw: RawTable, instance: Instance) -> dict[str, object]:
    for batch in raw.batches():
        if batch.data.num_rows:
            block = convert(batch.data.slice(0, 1), batch.rows[:1], instance)
            return dict(block.data.slice(0, 1).to_pylist()[0])
    return {}
