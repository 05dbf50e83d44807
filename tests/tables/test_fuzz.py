"""Mutated bytes of CSV and Parquet end in a ParaboltError or a valid table, nothing else."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parabolt
from parabolt.errors import ParaboltError
from parabolt.instances.catalogue import load_instance
from parabolt.tables.checks.verification import verify
from parabolt.tables.publishing.card import parse_card
from parabolt.tables.reading.reader import open_table
from parabolt.tables.table import Table

INSTANCE = load_instance("pco32")
#: Bytes that mean something in a CSV file.
PIECES = (
    b",",
    b'"',
    b"\n",
    b"\r\n",
    b"",
    b"nan",
    b"inf",
    b"-",
    b"1e9",
    b"\xff",
    b"\x00",
    b"[",
    b"]",
)


def mutated(content, rng):
    """A copy with some bytes replaced, removed, repeated or cut off."""
    content = bytearray(content)
    for _ in range(rng.integers(1, 6)):
        at = int(rng.integers(len(content)))
        match rng.integers(5):
            case 0:
                content[at] = rng.integers(256)
            case 1:
                content[at : at + int(rng.integers(1, 40))] = b""
            case 2:
                content[at:at] = content[at : at + int(rng.integers(1, 400))]
            case 3:
                content[at : at + 1] = PIECES[rng.integers(len(PIECES))]
            case 4 if rng.random() < 0.2:
                del content[at:]
        content = content or bytearray(b"x")
    return bytes(content)


def check(path):
    """Reads and verifies a file; the table must be valid if it is accepted."""
    try:
        table = Table(open_table(path).read(), INSTANCE)
    except ParaboltError:
        accepted = False
    else:
        accepted = True
        outcomes = table.outcomes
        assert (np.isfinite(outcomes.throughput) == outcomes.is_feasible).all()
        assert ((outcomes.memory_margin < 0) == outcomes.is_feasible).all()
        assert len(set(map(str, table.space.candidates))) == len(table)
    try:
        findings = verify(open_table(path), INSTANCE).findings
    except ParaboltError:
        assert not accepted
    else:
        assert accepted or len(findings)
        assert all(f.rule and f.expected for f in findings.first(50))
    return accepted


@pytest.fixture
def small(original):
    table = original("pco32")
    return Table(table.data.take(pa.array(range(0, 379, 16))), table.instance)


@pytest.mark.slow
def test_csv(small, tmp_path):
    small.to_csv(tmp_path / "sound.csv")
    content = (tmp_path / "sound.csv").read_bytes()
    rng = np.random.default_rng(0)
    accepted = 0
    for _ in range(700):
        (tmp_path / "a.csv").write_bytes(mutated(content, rng))
        accepted += check(tmp_path / "a.csv")
    assert 0 < accepted < 700


@pytest.mark.parametrize("compression", ["snappy", "none"])
def test_parquet(small, tmp_path, compression):
    pq.write_table(small.data, tmp_path / "sound.parquet", compression=compression)
    content = (tmp_path / "sound.parquet").read_bytes()
    rng = np.random.default_rng(1)
    for _ in range(600):
        (tmp_path / "a.parquet").write_bytes(mutated(content, rng))
        check(tmp_path / "a.parquet")


def test_cards(small, tmp_path):
    content = (Path(__file__).parents[1] / "data" / "pco32_card.md").read_bytes()
    rng = np.random.default_rng(2)
    parsed = 0
    for _ in range(1500):
        try:
            parse_card(mutated(content, rng).decode(errors="replace"), origin="card")
        except ParaboltError:
            continue
        parsed += 1
    assert 0 < parsed < 1500


def test_random_bytes(tmp_path):
    rng = np.random.default_rng(3)
    for suffix in ("csv", "parquet"):
        for size in (0, 1, 3, 4, 8, 100, 5000):
            path = tmp_path / f"a.{suffix}"
            path.write_bytes(rng.bytes(size))
            with pytest.raises(ParaboltError):
                parabolt.load_table(path, instance=INSTANCE)
