"""Every error parabolt raises on purpose.

Each is a `ParaboltError` and also the built-in that a caller would catch without knowing parabolt.
The text says what was expected, what was got and, where there is something to do, what to try. The
command line prints it as one line and exits with status 2.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class ParaboltError(Exception):
    """Base of all errors that parabolt raises on purpose.

    Its text is one line that can be printed, whatever it quotes: line ends, other control
    characters and halves of characters are written as escapes.
    """

    def __str__(self) -> str:
        return "".join(c if c.isprintable() else _escaped(c) for c in super().__str__())


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


class InvalidConfigurationError(ParaboltError, ValueError):
    """A configuration that breaks a validity rule of its instance."""


class MissingConfigurationError(ParaboltError, LookupError):
    """A legal configuration that the table at hand has no outcome for."""


class InstanceError(ParaboltError, ValueError):
    """A description of a model, cluster, workload or instance that cannot be."""


class TableError(ParaboltError, ValueError):
    """A table that contradicts the schema, with the row and column at fault."""


class ObservationError(ParaboltError, ValueError):
    """An outcome that says nothing an optimizer could use, such as a NaN throughput told as ok."""


class CandidatesExhaustedError(ParaboltError, RuntimeError):
    """Every candidate has been evaluated and repeats are to be avoided: the search is over."""


class ProposalError(ParaboltError, ValueError):
    """An optimizer proposed what is no candidate, or a candidate that it may not propose."""


class StoreError(ParaboltError, OSError):
    """Results can't be written: a full disk, a read-only directory."""


class LockedError(ParaboltError, BlockingIOError):
    """A directory or file that another process is writing to, with its pid and host."""


class StudyError(ParaboltError, RuntimeError):
    """A study whose results on disk don't belong to it."""


class OptionError(ParaboltError, ValueError):
    """An option, a budget or a seed outside what is allowed."""


class SpecError(ParaboltError, ValueError):
    """A spec of real trials that cannot be, with the section and key at fault."""


class JournalError(ParaboltError, RuntimeError):
    """A journal that can't be read, or that another process is writing."""


class LaunchError(ParaboltError, RuntimeError):
    """A launcher that can't launch at all: no trial would get further."""


class UnknownNameError(ParaboltError, LookupError):
    """A name that no registry knows."""

    @classmethod
    def of(cls, kind: str, name: str, known: Iterable[str]) -> UnknownNameError:
        """The error for `name`, with the known names and the closest of them."""
        names = sorted(known)
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        return cls(f"unknown {kind} {name!r}: expected one of {', '.join(names)}{hint}")


class MissingDependencyError(ParaboltError, ImportError):
    """An optional library is not installed."""

    @classmethod
    def of(cls, library: str, extra: str) -> MissingDependencyError:
        """The error for a missing `library`, with the command that installs it."""
        return cls(f"{library} is not installed; try: pip install 'parabolt[{extra}]'")
