"""One writer at a time: an advisory lock on a file that names its holder and dies with it."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from typing import TYPE_CHECKING, Self

from parabolt.errors import LockedError

if TYPE_CHECKING:
    from pathlib import Path


class Lock:
    """A lock that this process holds from now on; a context manager that releases it.

    The operating system lets go of it when the process dies, however it dies.

    Args:
        path: The lock file; made if it isn't there. A link is not followed.
        of: What it locks, for messages.
        is_lasting: Whether the file stays when the lock is released.

    Attributes:
        notice: What happened to a lock that a dead process left, in words; None if there was none.

    Raises:
        LockedError: If another process holds it, with its pid and host, or a process of another
            host has held it and nobody can know whether it still runs, or `path` is no file.
        OSError: If the file can't be written.
    """

    def __init__(self, path: Path, *, of: Path, is_lasting: bool = True) -> None:
        self._path, self._is_lasting = path, is_lasting
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise LockedError(f"{path}: expected a file, got something else; try deleting it")
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            self.notice = self._take(path, of)
        except BaseException:
            os.close(self._file)
            raise

    def _take(self, path: Path, of: Path) -> str | None:
        holder = _holder(os.pread(self._file, 4096, 0))
        here = socket.gethostname()
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LockedError(
                f"{of} is in use by {_words(holder)}; try again when it has ended, or another place"
            ) from None
        if not _is_at(self._file, path):  # its holder has just deleted it
            raise LockedError(f"{of} was in use until just now; try again")
        if holder is not None and holder[1] != here:
            # A lock doesn't reach every host of a shared file system, so being given it proves
            # nothing about a holder elsewhere.
            raise LockedError(
                f"{of} is in use by {_words(holder)}, which can't be asked from here; if it has "
                f"ended, delete {path} and try again"
            )
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, json.dumps({"pid": os.getpid(), "host": here}).encode(), 0)
        if holder is None:
            return None
        return f"took over the lock of {_words(holder)}, which ended without releasing it"

    def release(self) -> None:
        """Lets others have it."""
        os.ftruncate(self._file, 0)
        if not self._is_lasting:
            self._path.unlink(missing_ok=True)
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()


def _is_at(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.lstat())
    except FileNotFoundError:
        return False


def _holder(text: bytes) -> tuple[int, str] | None:
    try:
        holder = json.loads(text)
        return int(holder["pid"]), str(holder["host"])
    except (ValueError, ArithmeticError, KeyError, TypeError, RecursionError):
        return None  # empty: released, or its holder died before it had a name


def _words(holder: tuple[int, str] | None) -> str:
    if holder is None:
        return "a process that is just starting or ending"
    return f"process {holder[0]} on host {holder[1]}"
