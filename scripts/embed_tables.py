"""Makes the embedded Parquet tables anew.

Usage: python scripts/embed_tables.py CSV_DIR [OUT_DIR]

A table that this repository publishes, under `data/`, is embedded as `parabolt table build` made
it, once it agrees with its export (where that is kept), its instance and its card. CSV_DIR holds
the CSV files of the others.
"""

import shutil
import sys
from pathlib import Path

from parabolt.instances.catalogue import load_instance
from parabolt.tables.sources import EMBEDDED, load_table, locate
from parabolt.tables.table import Table

ROOT = Path(__file__).parents[1]
OUT = ROOT / "src/parabolt/tables/embedded"

#: The published tag, and that these copies were rebuilt from the authors' public logs.
REBUILT_VERSION = "v0.1.0+logs"


def main(source: Path, target: Path = OUT) -> None:
    """Writes one Parquet file per embedded table."""
    for name in EMBEDDED:
        published, path = ROOT / "data" / name, target / f"{name}.parquet"
        if published.is_dir():
            check(published, name)
            shutil.copyfile(published / "data.parquet", path)
        else:
            rebuilt = Table.from_csv(
                source / f"{name}.csv", load_instance(name), version=REBUILT_VERSION
            )
            rebuilt.to_parquet(path)
        table = Table.from_parquet(path, load_instance(name))
        print(f"{name}: {len(table)} rows, version {table.version}, SHA-256 {table.content_hash}")


def check(folder: Path, name: str) -> None:
    """Ends the script unless a published table is what its export says."""
    for finding in locate(folder).verify().findings:
        sys.exit(f"error: {folder}: {finding}")
    if not (folder / "sweep.csv").exists():
        return
    export = Table.from_csv(folder / "sweep.csv", load_instance(name))
    if load_table(folder).content_hash != export.content_hash:
        sys.exit(f"error: {folder}: expected the table of sweep.csv; try parabolt table build")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
