"""What is left of a trial when it has ended: exit, scheduler state, and the logs of all ranks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

#: Bytes kept of the beginning and of the end of a log; the failure is in one of them.
_HEAD, _TAIL = 200_000, 800_000
#: How torchrun, its log folders, Slurm's `%t` and Megatron-like programs name a rank in a path.
_RANK_IN_PATH = re.compile(r"(?:rank|attempt_\d+/)[-_]?(\d+)(?=\D|$)")


@dataclass(frozen=True)
class Log:
    """One log.

    Attributes:
        rank: Whose it is; None for the launcher's, or one that many ranks share.
        text: The log; a long one without its middle.
    """

    rank: int | None
    text: str


@dataclass(frozen=True)
class Ending:
    """Everything that the verdict on a trial rests on.

    Attributes:
        exit_code: Exit code of the command; negative for a signal; None where it isn't known.
        logs: The logs, launcher's first.
        scheduler_state: State of the job in Slurm's words; None without a scheduler.
        scheduler_reason: The scheduler's own explanation.
        hit_time_limit: Whether parabolt ended the trial at its time limit.
        was_stopped: Whether parabolt stopped the trial because it could not win.
        n_host_oom_kills: Processes that the kernel killed for lack of memory during the trial.
        report_fault: Why the measurements can't be used; None if there are enough.
        has_steps: Whether a step was measured; the logs may show none.
    """

    exit_code: int | None = None
    logs: tuple[Log, ...] = ()
    scheduler_state: str | None = None
    scheduler_reason: str | None = None
    hit_time_limit: bool = False
    was_stopped: bool = False
    n_host_oom_kills: int = 0
    report_fault: str | None = None
    has_steps: bool = False


def rank_of(path: Path, folder: Path) -> int | None:
    """The rank that a log's path names, below the log folder; None if it names none."""
    matches = _RANK_IN_PATH.findall(str(path.relative_to(folder)))
    return int(matches[-1]) if matches else None


def read_logs(folder: Path) -> tuple[Log, ...]:
    """All logs of a folder and its folders, those without a rank first."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    logs = [Log(rank_of(path, folder), _read(path)) for path in paths]
    return tuple(sorted(logs, key=lambda log: -1 if log.rank is None else log.rank))


def _read(path: Path) -> str:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(0)
        if size <= _HEAD + _TAIL:
            return file.read().decode(errors="replace")
        head = file.read(_HEAD)
        file.seek(size - _TAIL)
        text = head + b"\n[...]\n" + file.read()
    return text.decode(errors="replace")
