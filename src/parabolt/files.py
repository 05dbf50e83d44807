"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from typing import TYPE_CHECKING

from parabolt.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

#: Ending of a file that is being written; one that is left over was never finished.
UNFINISHED = ".tmp"


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file so that it is there whole or not at all, also after a power cut.

    What stood there before stays until the new content is on the disk. Folders are made as needed.

    Raises:
        StoreError: If it can't be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Nobody else writes under this name: neither another process nor another host.
        unfinished = path.parent / f".{secrets.token_hex(8)}{UNFINISHED}"
        try:
            with unfinished.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        except OSError:
            unfinished.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreError(
                f"no space left for {path}; what was finished before is safe: free some space and "
                "try again"
            ) from error
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from error


def _sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
