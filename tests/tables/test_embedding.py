"""The script that makes the embedded tables makes the ones that there are."""

import subprocess
import sys
from pathlib import Path

import parabolt
from parabolt.tables.sources import EMBEDDED
from parabolt.tables.table import Table

SCRIPT = Path(__file__).parents[2] / "scripts" / "embed_tables.py"


def test_script_makes_the_embedded_tables(tmp_path):
    for name in ("pco32", "pco64"):
        parabolt.load_table(name).to_csv(tmp_path / f"{name}.csv")
    out = tmp_path / "out"
    out.mkdir()
    done = subprocess.run([sys.executable, SCRIPT, tmp_path, out], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert sorted(path.stem for path in out.iterdir()) == sorted(EMBEDDED)
    for name in EMBEDDED:
        made = Table.from_parquet(out / f"{name}.parquet", parabolt.load_instance(name))
        embedded = parabolt.load_table(name)
        assert made.content_hash == embedded.content_hash
        assert made.version == embedded.version
        assert f"{name}: {len(made)} rows, version {made.version}" in done.stdout
