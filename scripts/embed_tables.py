"""Makes the embedded Parquet tables from the CSV tables, by the package's own conversion.

Usage: python scripts/embed_tables.py CSV_DIR
"""

import sys
from pathlib import Path

from parabolt.instances.catalogue import load_instance
from parabolt.tables.sources import EMBEDDED
from parabolt.tables.table import Table

#: The published tag, and that these copies were rebuilt from the authors' public logs.
VERSION = "v0.1.0+logs"


def main(source: Path) -> None:
    """Converts one CSV per embedded table."""
    target = Path(__file__).parents[1] / "src/parabolt/tables/embedded"
    for name in EMBEDDED:
        table = Table.from_csv(source / f"{name}.csv", load_instance(name), version=VERSION)
        table.to_parquet(target / f"{name}.parquet")
        print(f"{name}: {len(table)} rows, SHA-256 {table.content_hash}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
