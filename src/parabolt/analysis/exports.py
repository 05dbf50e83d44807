"""Tables of findings as CSV, Parquet, Markdown and LaTeX. Names in them are data, and escaped."""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from parabolt.analysis.sheets import Sheet

_TEX = str.maketrans(
    {
        "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
        "%": r"\%", "_": r"\_", "^": r"\^{}", "~": r"\~{}", "<": r"$<$", ">": r"$>$",
        "|": r"\textbar{}", '"': r"\textquotedbl{}", "[": "{[}",
    }
)  # fmt: skip
_MARKDOWN = re.compile(r"([\\`*_<|~$]|(?<=\])\()")


def as_csv(sheet: Sheet) -> str:
    """The figures in full."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(sheet.columns)
    writer.writerows(sheet.rows)
    return text.getvalue()


def as_parquet(sheet: Sheet) -> bytes:
    """The figures in full, with the title in the file's metadata under `title`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = zip(*sheet.rows, strict=True)
    data = pa.table(dict(zip(sheet.columns, map(list, columns), strict=True)))
    sink = pa.BufferOutputStream()
    pq.write_table(data.replace_schema_metadata({"title": sheet.title}), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def as_markdown(sheets: Iterable[Sheet]) -> str:
    """What is shown of tables; a section for each part, such as a problem."""
    lines = []
    for sheet in sheets:
        for part, rows in sheet.shown.items():
            # The leaderboard comes first and needs no title.
            title = _markdown(part) if sheet.name == "leaderboard" else _markdown(sheet.title)
            if title != _markdown(part):
                title = f"{title}: {_markdown(part)}"
            lines += [f"## {title}", "", _markdown_row(sheet.headings)]
            lines += ["|---|" + "---:|" * (len(sheet.headings) - 1)]
            lines += [_markdown_row(row) for row in rows]
            lines += [""]
    return "\n".join(lines)


def as_latex(sheets: Iterable[Sheet]) -> str:
    r"""What is shown of tables: a `longtable` for each part, for the `booktabs` package."""
    lines = [r"% \usepackage{booktabs, longtable}", r"% \usepackage[T1]{fontenc}", ""]
    for sheet in sheets:
        for part, rows in sheet.shown.items():
            lines += [
                f"% {_line(sheet.title)}: {_line(part)}",
                rf"\begin{{longtable}}{{l{'r' * (len(sheet.headings) - 1)}}}",
                r"\toprule",
                _tex_row(sheet.headings),
                r"\midrule",
                r"\endhead",
                *map(_tex_row, rows),
                r"\bottomrule",
                r"\end{longtable}",
                "",
            ]
    return "\n".join(lines)


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_markdown, cells))} |"


def _markdown(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", _line(text))


def _tex_row(cells: Sequence[str]) -> str:
    return " & ".join(_line(cell).translate(_TEX) for cell in cells) + r" \\"


def _line(text: str) -> str:
    """Text on one line, without characters that a terminal or a typesetter would obey."""
    return "".join(c if c.isprintable() else " " for c in text)
