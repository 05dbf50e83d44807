"""Built cards against the published ones (tests/data/pco*_card.md).

These are the README.md of the Hub data sets Glow-AI/pco32_tabular_data and pco64_tabular_data, tag
v0.1.0 (MIT, see NOTICE).
"""

import re
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import parabolt
from parabolt.errors import TableError
from parabolt.instances.catalogue import instance_text, load_instance
from parabolt.tables.checks.coverage import Coverage
from parabolt.tables.checks.verification import verify
from parabolt.tables.publishing.build import build
from parabolt.tables.publishing.card import parse_card, size_category
from parabolt.tables.publishing.card_text import Publication, render_card
from parabolt.tables.publishing.facts import TableFacts
from parabolt.tables.publishing.provenance import Provenance
from parabolt.tables.reading.conversion import convert
from parabolt.tables.reading.reader import open_table
from parabolt.tables.sources import locate
from parabolt.tables.table import Table

DATA = Path(__file__).parents[1] / "data"
EXPORTS = {"pco32": "data_40depth-32gpus.csv", "pco64": "data_64depth-64gpus.csv"}


def published(name):
    return parse_card((DATA / f"{name}_card.md").read_text(encoding="utf-8"), origin=name)


def build_from(table, folder, sweep_name, **publication):
    sweep = folder / sweep_name
    table.to_csv(sweep)
    name = table.instance.name
    about = {"title": "T", "license": "mit", "version": "v1"} | publication
    out = folder / "out"
    verification = build(sweep, table.instance, out, instance_text=instance_text(name), **about)
    assert list(verification.findings) == []
    return out


@pytest.mark.parametrize("name", EXPORTS)
def test_built_card_states_what_the_published_one_states(name, original, tmp_path):
    """Every field of the card, which is every figure and every cell of its tables."""
    n_gpus = load_instance(name).cluster.n_gpus
    title = f"BoLT Parallelism Configuration ({n_gpus} GPUs)"
    out = build_from(original(name), tmp_path, EXPORTS[name], title=title)
    built = parse_card((out / "README.md").read_text(encoding="utf-8"), origin="built")
    # The published card of pco32 doesn't say that 13 valid configurations have no row.
    n_valid = {"pco32": 392, "pco64": None}[name]
    assert asdict(built) == asdict(published(name)) | {"n_valid": n_valid}


def numbers(text):
    return sorted(set(re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.]*\d)", text)))


def parts(text):
    front, _, body = text.removeprefix("---\n").partition("\n---\n")
    prose, *sections = re.split(r"(?m)^## ", body)
    titled = {s.partition("\n")[0]: s.partition("\n")[2] for s in sections}
    return {"front": front, "prose": prose, **titled}


@pytest.mark.parametrize("name", EXPORTS)
def test_sections_and_their_figures_are_those_of_the_published_card(name, original, tmp_path):
    """Independent of the parser: sections in order, front matter, and the figures of each."""
    n_gpus = load_instance(name).cluster.n_gpus
    title = f"BoLT Parallelism Configuration ({n_gpus} GPUs)"
    out = build_from(original(name), tmp_path, EXPORTS[name], title=title)
    built = parts((out / "README.md").read_text(encoding="utf-8"))
    theirs = parts((DATA / f"{name}_card.md").read_text(encoding="utf-8"))
    assert list(built) == list(theirs)
    assert built["front"] == theirs["front"]
    # The built card also names the capacity, and how many configurations are valid.
    prose = re.sub(r" of 392 valid configurations; missing: [^.]*", "", built["prose"])
    assert set(numbers(prose)) - {"96", "1"} == set(numbers(theirs["prose"]))
    for title in ("Instance context", "Columns", "Best observed", "Provenance"):
        assert numbers(built[title]) == numbers(theirs[title]), title


@pytest.mark.parametrize("name", EXPORTS)
def test_card_of_the_embedded_table_lists_only_what_is_there(name, tmp_path):
    table = parabolt.load_table(name)
    out = build_from(table, tmp_path, "sweep.csv")
    text = (out / "README.md").read_text(encoding="utf-8")
    built, theirs = parse_card(text, origin="built"), published(name)
    own = {column[0]: column for column in built.columns}
    absent = {"throughput_std", "overall_time", "all_time_steps", "peak_mem_per_gpu"}
    for column in theirs.columns:
        assert (column[0] in absent) == (column[0] not in own)
        assert own.get(column[0], column) == column
    assert {c for c, role, _ in built.columns if role == "provenance"} == {
        "source_feasible", "source_throughput", "source_memory",
    }  # fmt: skip
    assert "Not everything is measured" in text
    assert "overall_time" not in text
    same = (
        "n_rows",
        "n_feasible",
        "largest_peak_mem",
        "best_throughput",
        "best_settings",
        "context",
    )
    assert {f: getattr(built, f) for f in same} == {f: getattr(theirs, f) for f in same}


@pytest.mark.parametrize("name", EXPORTS)
def test_published_card_holds_for_the_embedded_table(name, tmp_path):
    """All but the four columns that the embedded copy doesn't have, and its three of provenance."""
    parabolt.load_table(name).to_parquet(tmp_path / "data.parquet")
    (tmp_path / "README.md").write_text((DATA / f"{name}_card.md").read_text(encoding="utf-8"))
    findings = locate(tmp_path).verify().findings
    assert {finding.rule for finding in findings} == {"card_columns"}
    assert len(findings) == 4 + 3


def test_memory_threshold_is_said_of_the_table_at_hand(pco32):
    table = pco32.table
    publication = Publication("T", "mit", "sweep.csv", Provenance())
    coverage = Coverage.of(pco32.instance, table.codes)

    def card_of(data):
        block = convert(data, np.arange(len(data)), pco32.instance)
        facts = TableFacts.of(block, pco32.instance)
        columns = data.column_names
        text = render_card(facts, pco32.instance, columns, coverage, publication)
        return " ".join(text.split())

    with_failures = card_of(table.data)
    assert "finished runs reach 88.5 GB" in with_failures
    assert "no memory threshold separates the classes" in with_failures
    assert "`peak_mem_normalised` does so by construction" in with_failures
    without_margin = card_of(table.data.drop_columns(["peak_mem_normalised"]))
    assert "`ran_successfully` does." in without_margin
    assert "peak_mem_normalised" not in without_margin
    all_fit = card_of(table.data.filter(table.data.column("ran_successfully")))
    assert "every run finished, and they reach 88.5 GB" in all_fit
    assert "no failed runs" in all_fit
    assert "separates" not in all_fit
    none_ran = card_of(table.data.filter(pa.compute.invert(table.data.column("ran_successfully"))))
    assert "No run finished, so there is nothing to search" in none_ran


DAMAGES = [
    ("339 of", "338 of", "card_feasible", "ran_successfully"),
    ("88.5 GB", "88.6 GB", "card_largest_peak", "peak_mem"),
    ("= 0.46958 at", "= 0.46957 at", "card_best", "throughput_mean"),
    ("82.6 GB", "82.5 GB", "card_best", "peak_mem"),
    ("`log2_dp_bucket_size_mb`=8", "`log2_dp_bucket_size_mb`=9", "card_best",
     "log2_dp_bucket_size_mb"),
    ("| `num_layers` | 40 |", "| `num_layers` | 41 |", "card_context", "num_layers"),
    ("| `log2_num_hosts` | 3 |\n", "", "card_context", "log2_num_hosts"),
    ("32 GPUs across 8", "33 GPUs across 8", "card_gpus", "log2_num_gpus"),
    ("across 8 hosts", "across 4 hosts", "card_hosts", "log2_num_hosts"),
    ("# pco32", "# pco64", "card_name", ""),
    ("n<1K", "1K<n<10K", "card_size", ""),
    ("| `peak_mem` | output", "| `peak_memory` | output", "card_columns", "peak_mem"),
    ("no memory\nthreshold separates", "a memory\nthreshold separates", "card_threshold",
     "peak_mem"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "rule", "column"), DAMAGES)
def test_a_card_that_says_otherwise_is_found_out(old, new, rule, column, original, tmp_path):
    out = build_from(original("pco32"), tmp_path, "sweep.csv")
    card = out / "README.md"
    text = card.read_text(encoding="utf-8")
    assert old in text
    card.write_text(text.replace(old, new), encoding="utf-8")
    findings = locate(out).verify().findings
    assert (rule, column) in findings.counts()
    assert {key[0] for key in findings.counts()} == {rule}
    assert all(finding.row is None for finding in findings)
    with pytest.raises(TableError, match="contradicts its card"):
        parabolt.load_table(out)


@pytest.mark.parametrize(
    ("old", "message"),
    [
        ("339 of 379", "how many configurations run"),
        ("32 GPUs across", "GPUs and hosts"),
        ("`throughput_mean` = ", "the best row"),
        ("license: mit\n", "a licence"),
        ("# pco32", "a name"),
        ("reach\n88.5", "the largest peak memory"),
        ("## Provenance", "a source"),
    ],
)
def test_a_card_without_a_statement_is_refused(old, message, original, tmp_path):
    out = build_from(original("pco32"), tmp_path, "sweep.csv")
    text = (out / "README.md").read_text(encoding="utf-8")
    (out / "README.md").write_text(text.replace(old, ""), encoding="utf-8")
    with pytest.raises(TableError, match=message):
        locate(out)


@pytest.mark.parametrize(
    ("n", "category"),
    [
        (1, "n<1K"), (999, "n<1K"), (1000, "1K<n<10K"), (9999, "1K<n<10K"), (10_000, "10K<n<100K"),
        (999_999, "100K<n<1M"), (1_000_000, "1M<n<10M"), (10_000_000, "10M<n<100M"),
        (2_000_000_000, "1B<n<10B"),
    ],
)  # fmt: skip
def test_size_categories_are_the_hubs(n, category):
    assert size_category(n) == category


def test_facts_do_not_depend_on_the_blocks(pco64):
    data, instance = pco64.table.data, pco64.instance
    whole = TableFacts.of(convert(data, np.arange(len(data)), instance), instance)
    joined = TableFacts()
    for start in range(0, len(data), 37):
        part = data.slice(start, 37)
        block = convert(part, np.arange(start, start + len(part)), instance)
        joined = joined.joined(TableFacts.of(block, instance))
    assert joined == whole
    assert whole.best_row == 709


def test_nothing_is_written_when_there_are_findings(original, tmp_path):
    table = original("pco32")
    text = tmp_path / "sweep.csv"
    table.to_csv(text)
    lines = text.read_text().splitlines()
    text.write_text("\n".join([*lines, lines[-1]]) + "\n")
    out = tmp_path / "out"
    about = {"title": "T", "license": "mit", "version": "v1"}
    verification = build(text, table.instance, out, instance_text="", **about)
    assert [f.rule for f in verification.findings] == ["distinct"]
    assert list(out.iterdir()) == []


def test_a_table_is_not_overwritten(original, tmp_path):
    build_from(original("pco32"), tmp_path, "sweep.csv")
    with pytest.raises(parabolt.OptionError, match="exists already"):
        build_from(original("pco32"), tmp_path, "sweep.csv")


def test_built_parquet_is_the_sweep_unchanged(original, tmp_path):
    table = original("pco64")
    out = build_from(table, tmp_path, "sweep.csv", version="v7")
    again = parabolt.load_table(out)
    assert again.content_hash == table.content_hash
    assert again.version == "v7"
    assert again.data.column_names == table.data.column_names
    raw = open_table(out / "data.parquet")
    assert verify(raw, table.instance).findings.counts() == {}


def test_the_card_in_the_docs_is_the_one_that_is_built(tmp_path):
    title = "BoLT Parallelism Configuration (32 GPUs)"
    out = build_from(parabolt.load_table("pco32"), tmp_path, "pco32.csv", title=title)
    shown = (DATA.parents[1] / "docs" / "tables.md").read_text(encoding="utf-8")
    assert (out / "README.md").read_text(encoding="utf-8") in shown


def test_odd_names_of_columns_and_titles_stay_readable(original, tmp_path):
    names = [
        "",
        "a|b",
        "a\\|b",
        "line\nbreak",
        "\r",
        "`tick`",
        "ключ 🚀",
        " spaced ",
        "back\\slash\\",
    ]
    table = original("pco32")
    data = table.data
    for name in names:
        data = data.append_column(name, pa.array(["x"] * len(data)))
    odd = Table(data, table.instance)
    out = build_from(odd, tmp_path, "sweep.csv", title="Sweep: the first")
    text = (out / "README.md").read_text(encoding="utf-8")
    assert "pretty_name: 'Sweep: the first'\n" in text
    card = parse_card(text, origin="card")
    assert card.pretty_name == "Sweep: the first"
    assert [name for name, role, _ in card.columns if role == "extra"] == names
    assert list(locate(out).verify().findings) == []
