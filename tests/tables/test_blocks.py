"""Rows keep their numbers, and are compared with each other, across the blocks of a file."""

import csv
import io
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parabolt.errors import TableError
from parabolt.instances.catalogue import load_instance
from parabolt.tables.checks.verification import verify
from parabolt.tables.reading import csv_blocks, reader
from parabolt.tables.reading.reader import open_table
from parabolt.tables.table import Table

INSTANCE = load_instance("pco64")


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(reader, "_CSV_BLOCK_BYTES", 4096)
    monkeypatch.setattr(reader, "_PARQUET_BATCH_ROWS", 17)


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
    assert len(list(open_table(path).batches())) == 2
    monkeypatch.setattr(reader, "_CSV_BLOCK_BYTES", 4096)
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
from parabolt.tables.reading import reader
reader._CSV_BLOCK_BYTES = 5000
for n_read in range(30):
    batches = reader.open_table(Path(sys.argv[1])).batches()
    for _ in range(n_read % 10 + 1):
        next(batches)
"""


@pytest.mark.parametrize("attempt", range(8))
def test_a_file_may_be_left_at_any_block(tmp_path, attempt):
    """Arrow's threads, reading ahead, waited for the interpreter that waited for them."""
    path = tmp_path / "a.csv"
    path.write_text("a,b\n" + "".join(f"{i},{i}\n" if i % 7 else f"{i}\n" for i in range(50000)))
    subprocess.run([sys.executable, "-c", LEAVE_EARLY, path], check=True, timeout=60)


CELLS = st.text(st.sampled_from('a,"\n\r é'), max_size=5)
QUOTED = CELLS.map(lambda cell: '"' + cell.replace('"', '""') + '"')
LINES = st.lists(
    st.lists(QUOTED | st.sampled_from(["", "a", 'a"b', '""c', '"x"y"']), min_size=1, max_size=4)
)


@given(LINES, st.sampled_from(["\n", "\r\n"]), st.booleans(), st.integers(1, 90))
def test_rows_are_those_of_another_reader(tmp_path_factory, lines, end, is_ended, n_bytes):
    text = end.join(",".join(line) for line in [["x", "y", "z"], *lines])
    text += end * (is_ended or not lines)
    path = tmp_path_factory.getbasetemp() / "law.csv"
    path.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_CSV_BLOCK_BYTES", n_bytes)
        patch.setattr(csv_blocks, "_N_BLOCKS_IN_A_ROW", 10**9)
        batches = list(open_table(path).batches())
    header, *expected = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    found = {}
    for batch in batches:
        cells = zip(*(column.to_pylist() for column in batch.data.columns), strict=True)
        found |= dict(zip(batch.rows.tolist(), cells, strict=True))
        found |= {f.row: int(f.found) for group in batch.findings for f in group}
    assert header == ["x", "y", "z"]
    assert sorted(found) == list(range(len(expected)))
    for row, cells in enumerate(expected):
        if len(cells) == len(header):
            assert [cell or "" for cell in found[row]] == cells
        else:
            assert found[row] == len(cells)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n1,2\n" * 3 + b"1\xff,2\n", "expected UTF-8, got byte 0xff at offset 25"),
        (b"\xef\xbb\xbfa,b\n1,2\n1,2,\xc3", "expected UTF-8, got byte 0xc3 at offset 15"),
        (b'a,b\n"' + b"1,2\n" * 5000, "expected rows, got one of over .* try closing its quotes"),
    ],
)
def test_unreadable_blocks(tmp_path, small_blocks, content, message):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(TableError, match=message):
        list(open_table(tmp_path / "a.csv").batches())


@pytest.mark.parametrize("content", [b"a,b\r1,2\r3,4\r", b"\xef\xbb\xbf\n\na,b\n1,2\n\n\n3,4"])
def test_old_row_ends_byte_order_marks_and_blank_lines(tmp_path, monkeypatch, content):
    (tmp_path / "a.csv").write_bytes(content)
    for n_bytes in (1, 2, 3, 4, 100):
        monkeypatch.setattr(reader, "_CSV_BLOCK_BYTES", n_bytes)
        monkeypatch.setattr(csv_blocks, "_N_BLOCKS_IN_A_ROW", 100)
        assert open_table(tmp_path / "a.csv").read().to_pylist() == [
            {"a": "1", "b": "2"}, {"a": "3", "b": "4"},
        ]  # fmt: skip
