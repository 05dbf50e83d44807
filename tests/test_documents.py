"""Documents from TOML files: every fault is one line of the error that the reader asked for."""

import pytest

from parabolt.documents import check_keys, checked_text, parse_toml, read_text, shown
from parabolt.errors import SpecError, StudyError


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path):
    (tmp_path / "a.toml").write_bytes(b"\xef\xbb\xbfx = 1\n")
    assert read_text(tmp_path / "a.toml", "spec", SpecError) == "x = 1\n"


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_file_that_cannot_be_read(tmp_path, content):
    if content is not None:
        (tmp_path / "a.toml").write_bytes(content)
    with pytest.raises(StudyError, match=r"cannot read study .*a\.toml: "):
        read_text(tmp_path / "a.toml", "study", StudyError)


@pytest.mark.parametrize("text", ["x = [", f"x = {'[' * 100_000}", f"x = {'1' * 5000}", "x 1"])
def test_no_toml(text):
    with pytest.raises(SpecError, match=r"^expected TOML, got "):
        parse_toml(text, SpecError)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"a": 1}, None),
        ({"a": 1, "b": 2}, None),
        ({"b": 2}, "x: expected a, got b"),
        ({}, "x: expected a, got none"),
        ({"a": 1, "c": 2, "d": 3}, "x: expected keys among a, b, got c, d"),
        ([1], r"x: expected a table, got \[1\]"),
    ],
)
def test_keys(table, message):
    if message is None:
        check_keys("x", table, required=("a",), known=("b",), error=SpecError)
        return
    with pytest.raises(SpecError, match=f"^{message}$"):
        check_keys("x", table, required=("a",), known=("b",), error=SpecError)


@pytest.mark.parametrize("value", ["", "  ", 1, None, ["a"]])
def test_texts(value):
    assert checked_text("k", "a b", SpecError) == "a b"
    with pytest.raises(SpecError, match=r"k: expected a text, got "):
        checked_text("k", value, SpecError)


def test_long_values_are_cut():
    assert shown("x" * 78) == f"'{'x' * 78}'"
    assert shown("x" * 79) == f"'{'x' * 76}..."
    assert len(shown("x" * 1000)) == 80
