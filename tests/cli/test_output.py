"""What commands print: names and messages are data, whatever brackets and colons are in them."""

import io

import pytest
from rich.table import Table

from parabolt.cli.output import bold, console


@pytest.mark.parametrize(
    "text",
    ["pip install 'parabolt[report]'", "[red]x[/red]", "[/]", ":smile:", "[link=http://x]y[/link]"],
)
def test_brackets_and_colons_are_printed_as_they_are(text):
    screen = console()
    screen.file = io.StringIO()
    grid = Table(text, title=text)
    grid.add_row(text)
    screen.print(text)
    screen.print(bold(text), text, sep="")
    screen.print(grid)
    printed = screen.file.getvalue()
    assert printed.count(text) == 6
    assert printed.splitlines()[:2] == [text, text + text]


def test_a_pipe_is_100_columns_wide():
    assert console().width == 100
