"""Blocks of whole rows of a CSV file.

Arrow's own block reader works ahead in threads, and tells Python there of rows whose width differs
from the header's. A reader that is let go, or a process that ends, may then wait for ever: it holds
the interpreter, and the thread waits for that. Arrow's reader of one block has ended on return.
"""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING

from parabolt.documents import check_regular
from parabolt.errors import TableError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# A quote that isn't the first character of a cell is a character like any other.
_CELL = rb'(?:"[^"]*+(?:""[^"]*+)*+"?+)?+[^,\r\n]*+'
_ROW = rb"%b(?:,%b)*+(?:\r\n|\n|\r)" % (_CELL, _CELL)
_FIRST_ROW = re.compile(_ROW)
_WHOLE_ROWS = re.compile(b"(?:%b)*+" % _ROW)
#: A row that is longer than so many blocks is taken for a quote that nothing closes.
_N_BLOCKS_IN_A_ROW = 4


def csv_blocks(path: Path, n_bytes: int) -> Iterator[bytes]:
    """Reads a file block by block; each is the header and some whole rows.

    Args:
        path: A file in UTF-8, with or without byte-order mark; rows end with LF, CRLF or CR.
        n_bytes: About how long a block is to be.

    Raises:
        OSError: If it can't be read.
        TableError: If it isn't UTF-8, which Arrow doesn't check in rows of a wrong width, or a row
            is far longer than a block.
    """
    check_regular(path)
    with path.open("rb") as file:
        rest = file.read(len(codecs.BOM_UTF8)).removeprefix(codecs.BOM_UTF8)
        header = b""
        while content := file.read(n_bytes):
            rest = rest + content if header else (rest + content).lstrip(b"\r\n")
            rows, rest = _split(_WHOLE_ROWS, rest)
            if rows:
                _check_utf8(rows, path, file.tell() - len(rest) - len(rows))
                yield header + rows
                header = header or _split(_FIRST_ROW, rows)[0]
            elif len(rest) > _N_BLOCKS_IN_A_ROW * n_bytes:
                raise TableError(
                    f"cannot read {path}: expected rows, got one of over {len(rest)} bytes; "
                    "try closing its quotes"
                )
        if rest or not header:
            _check_utf8(rest, path, file.tell() - len(rest))
            yield header + rest


def _split(beginning: re.Pattern[bytes], content: bytes) -> tuple[bytes, bytes]:
    found = beginning.match(content)
    n_bytes = found.end() if found else 0
    return content[:n_bytes], content[n_bytes:]


def _check_utf8(content: bytes, path: Path, start: int) -> None:
    try:
        content.decode()
    except UnicodeDecodeError as error:
        raise TableError(
            f"cannot read {path}: expected UTF-8, got byte 0x{content[error.start]:02x} "
            f"at offset {start + error.start}"
        ) from error
