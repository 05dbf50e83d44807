"""A log file that is read while it is being written: each byte once, in bounded pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parabolt.frameworks.log_format import LogReading
from parabolt.frameworks.log_line import MAX_LENGTH

if TYPE_CHECKING:
    from pathlib import Path

    from parabolt.frameworks.log_format import LogFormat
    from parabolt.frameworks.measurements import Measurements
    from parabolt.instances.specs import Instance

#: Bytes that are read at once.
_PIECE = 1 << 20
#: Bytes that are kept of the beginning and of the end of a line whose end has not come.
_KEPT = 4 * MAX_LENGTH


class LogFollower:
    """Reads a log file; a line without its end is left for later.

    Args:
        path: The file.
        log_format: Its format.
        rank: Whose log it is, where a line doesn't say.
        instance: Gives the samples and tokens of a step.
    """

    def __init__(self, path: Path, log_format: LogFormat, rank: int, instance: Instance) -> None:
        self._path = path
        self._about = (log_format, rank, instance)
        self._begin()

    def _begin(self) -> None:
        self._reading = LogReading(*self._about)
        self._offset = 0
        self._rest = b""

    def read(self) -> None:
        """Reads what has come since the last call; a file that became shorter is read anew.

        Raises:
            ReportError: If a figure isn't understood, or the program began anew.
            OSError: If the file can't be read.
        """
        with self._path.open("rb") as file:
            if file.seek(0, 2) < self._offset:
                self._begin()
            file.seek(self._offset)
            while piece := file.read(_PIECE):
                self._offset += len(piece)
                text = self._rest + piece
                end = max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
                self._rest = text[end:]
                if len(self._rest) > 2 * _KEPT:
                    self._rest = self._rest[:_KEPT] + self._rest[-_KEPT:]
                self._feed(text[:end])

    def end(self) -> None:
        """Reads the rest of the file, its last line also without an end.

        Raises:
            ReportError: See `read`.
            OSError: See `read`.
        """
        self.read()
        self._feed(self._rest)
        self._rest = b""

    def measurements(self) -> Measurements:
        """What the file says if it ends with the last line that was read.

        Raises:
            ReportError: If it says nothing certain.
        """
        return self._reading.measurements()

    def _feed(self, text: bytes) -> None:
        self._reading.feed(text.decode(errors="replace").split("\n"))
