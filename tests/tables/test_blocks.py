"""Rows keep their numbers, and are compared with each other, across the blocks of a file."""

import csv
import subprocess
import sys

import numpy as np
import pytest

from parabolt.instances.catalogue import load_instance
from parabolt.tables import reading
from parabolt.tables.reading import open_table
from parabolt.tables.table import Table
from parabolt.tables.verification import verify

INSTANCE = load_instance("pco64")


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(reading, "_CSV_BLOCK_BYTES", 4096)
    monkeypatch.setattr(reading, "_PARQUET_BATCH_ROWS", 17)


def summary(path):
    verification = verify(open_table(path), INSTANCE)
    findings = sorted((f.row, f.column, f.rule, f.found) for f in verification.findings)
    return findings, verification.facts


def test_findings_and_facts_do_not_depend_on_the_blocks(original, tmp_path, monkeypatch):
    table = original("pco64")
    path = tmp_path / "sweep.csv"
    table.to_csv(path)
    lines = path.read_text().splitlines()
    rng = np.random.default_rng(0)
    for row in rng.choice(780, 40, replace=False):
        match rng.integers(5):
            case 0:
                lines[row + 1] += ",more"
            case 1:
                lines[row + 1] = lines[row + 1].replace(",64,64,", ",64,63,", 1)
            case 2:
                lines[row + 1] = lines[row + 1].replace(",true,", ",maybe,", 1)
            case 3:
                lines[row + 1] = lines[(row + 400) % 780 + 1]
            case 4:
                lines[row + 1] = "x" + lines[row + 1]
    path.write_text("\n".join([*lines, ""]))
    whole = summary(path)
    assert len(list(open_table(path).batches())) == 3
    monkeypatch.setattr(reading, "_CSV_BLOCK_BYTES", 4096)
    assert len(list(open_table(path).batches())) > 30
    assert summary(path) == whole
    assert {rule for _, _, rule, _ in whole[0]} >= {"row_width", "context", "type", "distinct"}


def test_values_do_not_depend_on_the_blocks(original, tmp_path, small_blocks):
    table = original("pco64")
    table.to_csv(tmp_path / "a.csv")
    table.to_parquet(tmp_path / "a.parquet")
    assert len(list(open_table(tmp_path / "a.parquet").batches())) == 1 + -(-780 // 17)
    for name in ("a.csv", "a.parquet"):
        assert (
            Table(open_table(tmp_path / name).read(), INSTANCE).content_hash == table.content_hash
        )
        assert summary(tmp_path / name) == ([], summary(tmp_path / "a.csv")[1])


def test_numbers_of_rows_with_line_breaks_in_their_cells(original, tmp_path, small_blocks):
    table = original("pco64")
    notes = [f"line\n{'x' * (i % 50)}\n" for i in range(780)]
    data = table.data.append_column("note", [notes])
    Table(data, INSTANCE).to_csv(tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    rows[701][rows[0].index("num_layers")] = "63"
    rows[301].append("more")
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    findings, _ = summary(tmp_path / "a.csv")
    assert [(row, rule) for row, _, rule, _ in findings] == [(300, "row_width"), (700, "context")]


LEAVE_EARLY = """
import sys
from pathlib import Path
from parabolt.tables import reading
reading._CSV_BLOCK_BYTES = 64
for n_read in range(300):
    batches = reading.open_table(Path(sys.argv[1])).batches()
    for _ in range(n_read % 20 + 1):
        next(batches)
    batches.close()
"""


def test_a_file_may_be_left_at_any_block(tmp_path):
    """Arrow 14 held the interpreter for ever when a reader went while its thread was reading."""
    path = tmp_path / "a.csv"
    path.write_text("a,b\n" + "".join(f"{i},{i}\n" for i in range(2000)))
    subprocess.run([sys.executable, "-c", LEAVE_EARLY, path], check=True, timeout=60)
