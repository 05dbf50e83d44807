"""Packs a finished study for the package: `python scripts/publish_runs.py STORE [NAME]`.

NAME is what `parabolt report --with published` calls it, by default that of the directory. The file
is `src/parabolt/experiments/published/NAME.parquet`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from parabolt.experiments.packed import pack_store

PUBLISHED = Path(__file__).parents[1] / "src" / "parabolt" / "experiments" / "published"


def main() -> None:
    """Writes the packed file, and says how large it is."""
    store = Path(sys.argv[1])
    name = sys.argv[2] if len(sys.argv) > 2 else store.resolve().name
    path = PUBLISHED / f"{name}.parquet"
    n_runs = pack_store(store, path)
    print(f"{path.name}: {n_runs} runs, {path.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
