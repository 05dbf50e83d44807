"""Texts in Markdown: whatever they hold, they are shown as they are, and read back as they were."""

from __future__ import annotations

import re

#: What Markdown or HTML would take for its own in a line of text.
_SPECIAL = re.compile(r"[\\`*_\[\]<>#&|~$]")
#: In the order in which they are replaced in a cell of a table.
_CELL = {"\\": "\\\\", "|": "\\|", "\n": "\\n", "\r": "\\r"}


def escaped(text: str) -> str:
    """A text for a heading or a sentence, on one line."""
    shown = _SPECIAL.sub(lambda match: f"\\{match[0]}", text)
    shown = "".join(c if c.isprintable() else f"&#{ord(c)};" for c in shown)
    # Markdown drops blanks at the ends of a line.
    return re.sub(r"^ | $", "&#32;", shown)


def unescaped(text: str) -> str:
    """The inverse of `escaped`."""
    return re.sub(r"\\(.)|&#(\d+);", lambda m: m[1] or chr(int(m[2])), text)


def code(text: str) -> str:
    """A text as a code span; line breaks are shown as blanks."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    shown = " ".join(text.splitlines()) if text.strip() else repr(text)
    pad = " " if shown[0] in "` " or shown[-1] in "` " else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def cell(text: str) -> str:
    """A text as a cell of a table."""
    for character, escape in _CELL.items():
        text = text.replace(character, escape)
    return text


def uncell(text: str) -> str:
    """The inverse of `cell`."""
    originals = {escape: character for character, escape in _CELL.items()}
    return re.sub(r"\\.", lambda match: originals.get(match[0], match[0]), text)
