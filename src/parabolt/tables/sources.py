"""Where tables come from: the embedded ones by name."""

from __future__ import annotations

from importlib import resources

from parabolt.errors import UnknownNameError
from parabolt.instances.catalogue import load_instance
from parabolt.tables.table import Table

#: Embedded tables, by the name of their instance.
EMBEDDED: tuple[str, ...] = ("pco32", "pco64")


def load_table(name: str) -> Table:
    """The embedded table of an instance.

    Raises:
        UnknownNameError: If no table of that name is embedded.
    """
    if name not in EMBEDDED:
        raise UnknownNameError.of("table", name, EMBEDDED)
    file = resources.files("parabolt.tables") / "embedded" / f"{name}.parquet"
    with resources.as_file(file) as path:
        return Table.from_parquet(path, load_instance(name))
