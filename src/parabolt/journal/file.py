"""The journal: an append-only file of JSON lines, each on disk before anything depends on it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Self

from parabolt.documents import is_there, read_bytes
from parabolt.errors import JournalError, LockedError
from parabolt.lock import Lock

if TYPE_CHECKING:
    from pathlib import Path

Record = dict[str, Any]

#: A link is not followed.
_OPEN = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
#: Name of the journal in a session's folder.
JOURNAL = "journal.jsonl"


class Journal:
    """A journal opened for writing; at most one at a time. Use it as a context manager.

    A line that was torn by a crash is cut off as the journal is opened: what it would have said was
    never relied on.

    Args:
        path: The file; made if it isn't there. Beside it stands a lock file with process id and
            host of the writer, held for as long as the journal is open.

    Attributes:
        records: All records, in order.
        notice: What happened to a lock that a dead process left, in words; None if there was none.

    Raises:
        LockedError: If another process is writing.
        JournalError: If it can't be written, or a line isn't a record.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = Lock(path.with_name(f"{path.name}.lock"), of=path)
        except LockedError:
            raise
        except OSError as error:
            raise JournalError(f"cannot write {path}: {error.strerror}") from error
        self.notice = self._lock.notice
        try:
            self.records, size = _read(path)
            self._file = os.open(path, _OPEN, 0o644)
            os.ftruncate(self._file, size)
        except BaseException as error:
            self._lock.release()
            if isinstance(error, OSError):
                raise JournalError(f"cannot write {path}: {error.strerror}") from error
            raise

    def append(self, record: Record) -> None:
        """Writes a record and waits until it is on disk.

        Raises:
            JournalError: If it can't be written, for instance to a full disk, or the file is gone.
        """
        self.check()
        line = (json.dumps(record, allow_nan=False) + "\n").encode()
        size = os.fstat(self._file).st_size
        try:
            while line:
                line = line[os.write(self._file, line) :]
            os.fsync(self._file)
        except OSError as error:
            os.ftruncate(self._file, size)  # a half line must not meet the next one
            raise JournalError(f"cannot write {self._path}: {error.strerror}") from error
        self.records.append(record)

    def check(self) -> None:
        """Looks whether what was written is still to be found.

        Raises:
            JournalError: If the file was removed or replaced.
        """
        try:
            is_same = os.path.samestat(os.fstat(self._file), self._path.lstat())
        except OSError:
            is_same = False
        if not is_same:
            raise JournalError(
                f"{self._path} was removed or replaced while it was being written; what it held "
                "can't be found again: try another directory"
            )

    def close(self) -> None:
        """Lets others write."""
        os.close(self._file)
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def read_journal(path: Path) -> list[Record]:
    """All records of a journal that may be being written; a torn last line is left out.

    Raises:
        JournalError: If there is no journal, or a line isn't a record.
    """
    if not is_there(path):
        raise JournalError(f"expected a journal at {path}, got none")
    return _read(path)[0]


def _read(path: Path) -> tuple[list[Record], int]:
    """The records, and the size in bytes of the lines that are whole."""
    try:
        text = read_bytes(path)
    except FileNotFoundError:
        return [], 0
    except OSError as error:
        raise JournalError(f"cannot read {path}: {error.strerror}") from error
    size = text.rfind(b"\n") + 1
    records = []
    for number, line in enumerate(text[:size].splitlines(), start=1):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise JournalError(
                f"{path}, line {number}: expected a JSON object, got {line[:60]!r}; the file was "
                "changed by something else"
            )
        records.append(record)
    return records, size
