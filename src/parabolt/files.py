"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from parabolt.errors import ParaboltError, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

#: Ending of a file that is being written; one that is left over was never finished.
UNFINISHED = ".tmp"


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file so that it is there whole or not at all, also after a power cut.

    What stood there before stays until the new content is on the disk. Folders are made as needed.

    Raises:
        StoreError: If it can't be written.
    """
    with unfinished(path) as file:
        file.write_bytes(content)


def write_all_whole(contents: Mapping[Path, bytes]) -> None:
    """Writes files that belong together: all are on the disk before the first takes its place.

    Raises:
        StoreError: If one can't be written; then all stay as they were.
    """
    with ExitStack() as stack:
        for path, content in contents.items():
            stack.enter_context(unfinished(path)).write_bytes(content)


@contextmanager
def unfinished(path: Path) -> Iterator[Path]:
    """A new file beside `path` that takes its place, on the disk, when the block ends well.

    If the block raises, or deletes the file, what stood at `path` before stays. A link at `path` is
    replaced and not followed. Folders are made as needed.

    Raises:
        StoreError: If it can't be written; an `OSError` of the block becomes one, too.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Nobody else writes under this name: neither another process nor another host.
        file = path.parent / f".{secrets.token_hex(8)}{UNFINISHED}"
        file.touch(exist_ok=False)
        try:
            yield file
            if file.exists():
                _sync(file)
                file.replace(path)
        finally:
            file.unlink(missing_ok=True)
        _sync(path.parent)
    except ParaboltError:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreError(
                f"no space left for {path}; what was finished before is safe: free some space and "
                "try again"
            ) from error
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from error


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
