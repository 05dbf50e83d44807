"""Tables in every format say the same, and names in them are text, whatever they hold."""

import csv
import io
import math
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parabolt.analysis.exports import as_csv, as_latex, as_markdown, as_parquet
from parabolt.analysis.sheets import Sheet

NAMES = [
    "a\\input{secret}", "a|b", "$x$", "<!--<script>", "50 % & more #1", "_a_b*c*`d`", "x](http://e)",
    "[opt] ~ ^ \"q\" 'p'", "two\nlines\r\tand \x1b[31mred", "日本 🚀",
]  # fmt: skip


@pytest.fixture
def sheet():
    rows = [(name, n, n / 7.0, math.nan if n else math.inf) for n, name in enumerate(NAMES)]
    shown = {name: [[name, f"{n / 7:.2f}"]] for name, n, *_ in rows}
    return Sheet("made", "A title\nof two lines", ("who", "n", "x", "y"), rows,
                 ("who", "x"), shown)  # fmt: skip


def test_csv_holds_the_figures_in_full(sheet):
    found = list(csv.reader(io.StringIO(as_csv(sheet))))
    assert found[0] == ["who", "n", "x", "y"]
    assert [row[0] for row in found[1:]] == NAMES
    assert [float(row[2]) for row in found[1:]] == [row[2] for row in sheet.rows]
    assert [row[3] for row in found[1:3]] == ["inf", "nan"]


def test_parquet_holds_the_figures_with_their_types(sheet):
    data = pq.read_table(pa.BufferReader(as_parquet(sheet)))
    assert [str(field.type) for field in data.schema] == ["string", "int64", "double", "double"]
    assert data.schema.metadata[b"title"].decode() == sheet.title
    assert data.column("who").to_pylist() == NAMES
    assert data.column("x").to_pylist() == [row[2] for row in sheet.rows]
    assert data.column("y").to_pylist()[0] == math.inf


TEX = {
    r"\textbackslash{}": "\\", r"\{": "{", r"\}": "}", r"\$": "$", r"\&": "&", r"\#": "#",
    r"\%": "%", r"\_": "_", r"\^{}": "^", r"\~{}": "~", "$<$": "<", "$>$": ">",
    r"\textbar{}": "|", r"\textquotedbl{}": '"', "{[}": "[",
}  # fmt: skip


def one_line(text):
    return "".join(c if c.isprintable() else " " for c in text)


def test_latex_shows_names_as_they_are(sheet):
    text = as_latex([sheet])
    rows = re.findall(r"\\endhead\n(.*?) & \d\.\d\d \\\\\n\\bottomrule", text)
    pattern = re.compile("|".join(map(re.escape, TEX)))
    assert [pattern.sub(lambda m: TEX[m.group()], row) for row in rows] == list(
        map(one_line, NAMES)
    )
    for row in rows:  # nothing is left that LaTeX would obey
        assert not re.search(r"[\\{}$&#%_^~<>|\"\[]", pattern.sub("", row)), row
    comments = [line for line in text.splitlines() if line.startswith("%")]
    assert len(comments) == 2 + len(NAMES)
    assert not any(line.startswith("lines") for line in text.splitlines())


def test_markdown_keeps_a_name_in_its_cell(sheet):
    text = as_markdown([sheet])
    rows = re.findall(r"\|---\|---:\|\n\| (.*) \| \d\.\d\d \|\n", text)
    assert [re.sub(r"\\([\\`*_<|~$(])", r"\1", row) for row in rows] == list(map(one_line, NAMES))
    for row in rows:
        assert not re.search(r"(?<!\\)(\\\\)*[`*_<|~$]|\]\(", row), row
    assert text.count("\n## A title of two lines: ") + text.startswith("## A title") == len(NAMES)
