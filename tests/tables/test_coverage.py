"""What a table lacks is said: on the card, at build and at verify."""

import re

import numpy as np
import pyarrow as pa
import pytest
from tests.tables.conftest import invented

import parabolt
from parabolt.instances.catalogue import (
    instance_document,
    instance_from_document,
    instance_text,
    parse_instance,
)
from parabolt.instances.search_space import SearchSpace
from parabolt.space.configuration import Configuration
from parabolt.tables.checks.coverage import Coverage
from parabolt.tables.publishing.build import build
from parabolt.tables.publishing.card import parse_card
from parabolt.tables.schema import context_values
from parabolt.tables.sources import locate

#: 4 GPUs: dp tp = 4, and tp <= 2. Valid: dp4 tp1 and dp2 tp2, each with two buckets.
FOUR = parse_instance(
    """
name = "four"
model = {n_layers = 2, n_heads = 2, hidden_size = 8, ffn_size = 8}
cluster = {n_gpus = 4, n_hosts = 1, memory_gib = 8}
workload = {sequence_length = 8, batch_size = 8}
knobs = {dp = [1, 2, 4], tp = [1, 2], bucket = [1, 2]}
""",
    origin="four",
)
VALID = [(2, 2, 1), (2, 2, 2), (4, 1, 1), (4, 1, 2)]


def codes(rows):
    encoding = FOUR.encoding
    return encoding.codes(
        encoding.encode([Configuration(dp=d, tp=t, bucket=b) for d, t, b in rows])
    )


@pytest.mark.parametrize("rows", [VALID, VALID[1:], VALID[:1], [VALID[3], VALID[0]]])
def test_a_hand_worked_coverage(rows):
    found = Coverage.of(FOUR, codes(rows))
    assert (found.n_valid, found.n_covered) == (4, len(rows))
    missing = [(c.dp, c.tp, c.bucket) for c in found.missing]
    assert missing == sorted(set(VALID) - set(rows))
    assert found.is_whole == (rows is VALID)


def test_the_description_names_twelve_and_counts_the_rest():
    table = parabolt.load_table("pco32")
    found = Coverage.of(table.instance, table.codes)
    assert found.description.startswith("379 of 392 valid configurations; missing: dp2 tp1 pp8 cp2")
    assert found.description.endswith(" zero0 chunks1, and 1 more")
    assert found.description.count("dp") == 12
    assert Coverage.of(FOUR, codes(VALID)).description == "4 of 4 valid configurations"
    assert Coverage.of(FOUR, codes(VALID[:-1])).description == (
        "3 of 4 valid configurations; missing: dp4 tp1 pp1 cp1 sp1 bucket2 zero0 chunks1"
    )


@pytest.mark.parametrize("name", ["pco64", "pco4-cpu"])
def test_whole_tables_are_whole(name):
    table = parabolt.load_table(name)
    assert Coverage.of(table.instance, table.codes).is_whole
    assert len(table) == len(SearchSpace.lattice(table.instance))


def built(tmp_path, keep):
    data = invented(FOUR, share_feasible=1.0).take(pa.array(np.flatnonzero(keep)))
    parabolt.Table(data, FOUR).to_csv(tmp_path / "four.csv")
    about = {"version": "v1", "title": "T", "license": "mit"}
    out = tmp_path / "out"
    text = instance_text("pco4-cpu")  # whatever stands there; it is not read by the card
    found = build(tmp_path / "four.csv", FOUR, out, instance_text=text, **about)
    return found, (out / "README.md").read_text(encoding="utf-8")


def test_a_card_says_all_only_where_it_is_true(tmp_path):
    found, text = built(tmp_path, [True] * 4)
    assert found.coverage.is_whole
    assert "its 4\nrows are all of the candidates." in text
    assert "for each parallelism configuration" in text
    assert parse_card(text, origin="card").n_valid is None


def test_a_card_says_what_is_missing(tmp_path):
    found, text = built(tmp_path, [True, False, True, True])
    assert found.coverage.n_covered == 3
    assert (
        "its 3\nrows are 3 of 4 valid configurations; missing: dp2 tp2 pp1 cp1 sp1 bucket2" in text
    )
    assert "all of the candidates" not in text
    assert "each parallelism configuration" not in text
    assert parse_card(text, origin="card").n_valid == 4


def test_a_card_with_another_number_of_valid_configurations_is_found_out(tmp_path):
    built(tmp_path, [True, False, True, True])
    card = tmp_path / "out" / "README.md"
    text = card.read_text(encoding="utf-8")
    card.write_text(re.sub("3 of 4 valid", "3 of 5 valid", text), encoding="utf-8")
    findings = list(locate(tmp_path / "out", instance=FOUR).verify().findings)
    assert [(f.rule, f.found) for f in findings] == [("card_coverage", "5")]
    assert findings[0].expected == "4 on the card, as the table has it"
    with pytest.raises(parabolt.errors.TableError, match=r"contradicts its card.*expected 4 on"):
        parabolt.load_table(tmp_path / "out", instance=FOUR)


def test_a_table_of_the_only_candidate(tmp_path):
    """All knobs are fixed: one row, and no column of a searched knob."""
    fixed = instance_document(FOUR) | {"knobs": {"dp": [4], "tp": [1], "bucket": [1]}}
    instance = instance_from_document(fixed, origin="fixed")
    (row,) = SearchSpace.lattice(instance).encoded
    assert row.shape == (0,)
    columns = {name: [value] for name, value in context_values(instance).items()} | {
        "ran_successfully": [True],
        "throughput_mean": [0.5],
        "peak_mem": [4.0],
    }
    (tmp_path / "x.csv").write_text(
        ",".join(columns) + "\n" + ",".join(str(cells[0]) for cells in columns.values()) + "\n"
    )
    table = parabolt.load_table(tmp_path / "x.csv", instance=instance)
    assert table.outcomes.throughput.tolist() == [0.5]
