"""The records of a journal.

Kinds: `created` (identity of the spec, and what is searched), `asked` (a trial begins), `launched`
and `ended` (an attempt of it; the last one is final, and its outcome stands), `reopened` (a trial
that was set aside runs again). A trial that was asked and has no outcome was under way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parabolt.journal.about import About
    from parabolt.journal.file import Record
    from parabolt.outcome import Outcome
    from parabolt.space.configuration import Configuration

#: Version of the records, in `created`.
VERSION = 1


def created(identity: dict[str, str], about: About) -> Record:
    """The first record."""
    about_record = about.as_record()
    return {"kind": "created", "version": VERSION, "identity": identity, "about": about_record}


def asked(number: int, configuration: Configuration, *, repeats: int | None = None) -> Record:
    """A trial begins; `repeats` is the trial that it runs again to confirm it, if any."""
    record: Record = {
        "kind": "asked", "trial": number, "configuration": configuration.as_dict()
    }  # fmt: skip
    return record if repeats is None else {**record, "repeats": repeats}


def launched(number: int, folder: str) -> Record:
    """An attempt begins."""
    return {"kind": "launched", "trial": number, "folder": folder}


def reopened(number: int) -> Record:
    """A trial that was set aside runs again."""
    return {"kind": "reopened", "trial": number}


def ended(
    number: int,
    outcome: Outcome,
    *,
    reason: str,
    saved_s: float,
    statistics: dict[str, Any] | None,
    is_final: bool,
) -> Record:
    """An attempt has ended; if it is the trial's last, its outcome stands."""
    return {
        "kind": "ended",
        "trial": number,
        "is_final": is_final,
        "outcome": outcome.to_record(),
        "reason": reason,
        "saved_s": saved_s,
        "statistics": statistics,
    }
