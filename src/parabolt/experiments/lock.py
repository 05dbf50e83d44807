"""One writer per directory: an advisory lock that names its holder and dies with it."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

from parabolt.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Holds `folder` for this process; the operating system lets go of it if the process dies.

    Raises:
        StoreError: If another process holds it, with its pid and host, or it can't be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "lock.json").open("a+", encoding="utf-8")
    except OSError as error:
        raise StoreError(f"cannot write to {folder}: {error.strerror}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise StoreError(f"{folder} is in use by {_holder(file.read())}") from None
        file.truncate(0)
        json.dump({"pid": os.getpid(), "host": socket.gethostname()}, file)
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def _holder(text: str) -> str:
    try:
        about = json.loads(text)
        return f"process {about['pid']} on host {about['host']}; try again when it has ended"
    except (ValueError, KeyError, TypeError):
        return "another process that is just starting or ending; try again"
