"""Names are data: whatever they hold, a card shows them as they are and reads them back."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import parabolt
from parabolt.instances.catalogue import instance_text, parse_instance
from parabolt.tables.publishing.build import build
from parabolt.tables.publishing.card import parse_card
from parabolt.tables.publishing.markdown import cell, code, escaped, uncell, unescaped
from parabolt.tables.sources import locate

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)


@given(TEXTS)
def test_a_text_of_a_heading_comes_back_and_keeps_to_its_line(text):
    shown = escaped(text)
    assert unescaped(shown) == text
    assert len(shown.splitlines()) == 1
    assert shown == shown.strip()


@given(TEXTS)
def test_a_cell_comes_back_and_keeps_to_its_cell(text):
    shown = cell(text)
    assert uncell(shown) == text
    assert not re.search(r"(?<!\\)(\\\\)*\|", shown)
    assert "\n" not in shown


def test_what_markdown_would_take_for_its_own_is_escaped():
    assert escaped("<b> # *x* [y](z) `c` a_b") == (r"\<b\> \# \*x\* \[y\](z) \`c\` a\_b")
    assert escaped(" a\nb ") == "&#32;a&#10;b&#32;"
    assert escaped("🚀 pco4-cpu") == "🚀 pco4-cpu"


def test_a_code_span_has_a_fence_longer_than_what_it_holds():
    assert code("torchrun x.py") == "`torchrun x.py`"
    assert code("a`b``c") == "```a`b``c```"
    assert code("`x`") == "`` `x` ``"
    assert code("a\nb") == "`a b`"
    assert code(" ") == "`' '`"


NAMES = [
    "my cluster", "# x", "x ", "null", "5 GPUs across 3 hosts; 7 rows are", "a\nb", "🚀",
    "<script>", "`", "*b*", "a\\", "## Provenance",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_any_name_of_an_instance_and_title_is_built_and_verified(name, tmp_path):
    table = parabolt.load_table("pco4-cpu")
    table.to_csv(tmp_path / "m.csv")
    text = instance_text("pco4-cpu")
    quoted = re.sub(r"(?m)^name = .*$", lambda _: f"name = {toml(name)}", text)
    assert tomllib.loads(quoted)["name"] == name
    instance = parse_instance(quoted, origin="i.toml")
    out = tmp_path / "out"
    about = {"version": "v1", "title": name, "license": "mit"}
    built = build(tmp_path / "m.csv", instance, out, instance_text=quoted, **about)
    assert list(built.findings) == []
    located = locate(out)
    assert (located.card.name, located.card.pretty_name) == (name, name)
    assert located.card.n_rows == 80
    assert list(located.verify().findings) == []
    front = (out / "README.md").read_text(encoding="utf-8").split("---\n")[1]
    assert yaml.safe_load(front)["pretty_name"] == name


def toml(text):
    """A TOML basic string: what is special or no character to print stands by its number."""
    kept = [c if c.isprintable() and c not in '"\\' else f"\\u{ord(c):04x}" for c in text]
    return f'"{"".join(kept)}"'


TITLES = ["No", "null", "true", "on", "1e3", "2020-01-01", "a: b", "- x", "'"]


@pytest.mark.parametrize("title", TITLES)
def test_yaml_reads_a_title_as_the_text_that_it_is(title, tmp_path):
    table = parabolt.load_table("pco4-cpu")
    table.to_csv(tmp_path / "m.csv")
    text = instance_text("pco4-cpu")
    about = {"version": "v1", "title": title, "license": title}
    build(tmp_path / "m.csv", table.instance, tmp_path / "o", instance_text=text, **about)
    card = (tmp_path / "o" / "README.md").read_text(encoding="utf-8")
    front = yaml.safe_load(card.split("---\n")[1])
    assert (front["pretty_name"], front["license"]) == (title, title)
    read = parse_card(card, origin="card")
    assert (read.pretty_name, read.license) == (title, title)


def test_a_title_that_version_0_1_left_plain_is_read_as_text():
    text = (Path(__file__).parents[1] / "data" / "pco32_card.md").read_text(encoding="utf-8")
    plain = re.sub(r"(?m)^pretty_name: .*$", "pretty_name: No", text)
    assert parse_card(plain, origin="card").pretty_name == "No"
