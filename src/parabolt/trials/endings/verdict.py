"""How a trial ended, decided from all its evidence together.

In order: finished with enough steps; stopped; out of memory anywhere; a place that the scheduler
lost; the first error of a rank that wasn't merely left alone by another; a hung collective; the
time limit; what the exit code says. Memory is asked before all other failures, because a rank that
runs out of it takes the others down with errors that look like anything else.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

from parabolt.outcome import Status
from parabolt.trials.endings.evidence import signal_name
from parabolt.trials.endings.failures import (
    is_collective_timeout,
    is_complaint,
    is_exception,
    is_lost_peer,
    is_out_of_memory,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from parabolt.trials.endings.evidence import Evidence, Log

#: Longest quotation from a log.
_QUOTE = 300
#: Slurm states of a job that lost its place through no fault of its own.
_INFRASTRUCTURE = {
    "NODE_FAIL": "a node of the job failed",
    "BOOT_FAIL": "a node of the job failed to boot",
    "PREEMPTED": "the job was preempted",
    "CANCELLED": "the job was cancelled by somebody else",
    "REVOKED": "the job was revoked",
    "DEADLINE": "the job passed its deadline",
    "LAUNCH_FAILED": "the scheduler could not launch the job",
}
#: SIGABRT, by which a collective's watchdog ends its process, and SIGTERM, by which others do.
_ENDED_BY_OTHERS = (signal.SIGABRT, signal.SIGTERM)
#: Exit codes of a process that was killed outright, as Python and as a shell gives them.
_KILLED = {-signal.SIGKILL, 128 + signal.SIGKILL}
#: A prefix such as `[rank3]:`, `[default3]:`, `3: ` (srun --label), or `[host:3]:`.
_PREFIX = re.compile(r"^\s*(?:\[(?:rank|default|[\w.-]+:)?(\d+)\]:?|(\d+):)\s?")
_ROOT_CAUSE = re.compile(r"Root Cause \(first observed failure\)")
_ROOT_RANK = re.compile(r"rank\s*:\s*(\d+)")
_ROOT_EXIT = re.compile(r"exitcode\s*:\s*(-?\d+)")


@dataclass(frozen=True)
class Verdict:
    """How a trial ended, and why.

    Attributes:
        status: The status.
        reason: One line that says why, quoting the evidence; empty where all went well.
    """

    status: Status
    reason: str = ""


@dataclass(frozen=True)
class _Line:
    rank: int | None
    text: str


def decide(evidence: Evidence) -> Verdict:
    """The verdict on a trial."""
    lines = [line for log in evidence.logs for line in _lines(log)]
    finished = evidence.exit_code == 0 and evidence.report_fault is None
    if finished and evidence.scheduler_state in (None, "COMPLETED"):
        return Verdict(Status.OK)
    if evidence.was_stopped:
        return Verdict(Status.STOPPED, "could not beat the best one any more")
    return (
        _out_of_memory(evidence, lines)
        or _infrastructure(evidence)
        or _own_error(evidence, lines)
        or _timeout(evidence, lines)
        or _other(evidence, lines)
    )


def _out_of_memory(evidence: Evidence, lines: list[_Line]) -> Verdict | None:
    found = next((line for line in lines if is_out_of_memory(line.text)), None)
    if found is not None:
        return Verdict(Status.OOM, _quote(found))
    if evidence.scheduler_state == "OUT_OF_MEMORY":
        return Verdict(Status.OOM, "the scheduler killed the job for lack of host memory")
    killed = _KILLED & {evidence.exit_code, _root_cause(lines)[1]}
    if evidence.n_host_oom_kills and killed:
        n = evidence.n_host_oom_kills
        return Verdict(
            Status.OOM, f"the kernel killed {n} process{'es' * (n > 1)} for lack of memory"
        )
    return None


def _own_error(evidence: Evidence, lines: list[_Line]) -> Verdict | None:
    """A crash by an error that no other rank caused; that of torchrun's root cause, if it says."""
    if evidence.exit_code == 0:
        return None
    root, root_exit = _root_cause(lines)
    own = [line for line in lines if not _is_consequence(line.text)]
    first = _first([line for line in own if is_exception(line.text)], root)
    if first is None and not evidence.hit_time_limit:
        first = _first([line for line in own if is_complaint(line.text)], root)
    if first is not None and evidence.hit_time_limit and first.rank is None:
        return None  # an error in passing, after which the program went on until the limit
    if first is not None:
        return Verdict(Status.CRASHED, _quote(first))
    if root_exit is not None and root_exit < 0 and -root_exit not in _ENDED_BY_OTHERS:
        return Verdict(Status.CRASHED, f"rank {root} ended with {signal_name(root_exit)}")
    return None


def _is_consequence(text: str) -> bool:
    return is_lost_peer(text) or is_collective_timeout(text)


def _first(lines: list[_Line], rank: int | None) -> _Line | None:
    """The first line of `rank`; of any rank where that one has none."""
    return next((line for line in lines if line.rank == rank), None) or next(iter(lines), None)


def _timeout(evidence: Evidence, lines: list[_Line]) -> Verdict | None:
    hung = next((line for line in lines if is_collective_timeout(line.text)), None)
    if hung is not None:
        return Verdict(Status.TIMEOUT, f"a collective hung; {_quote(hung)}")
    if evidence.hit_time_limit or evidence.scheduler_state == "TIMEOUT":
        return Verdict(Status.TIMEOUT, "hit the time limit")
    return None


def _infrastructure(evidence: Evidence) -> Verdict | None:
    reason = _INFRASTRUCTURE.get(evidence.scheduler_state or "")
    if reason is None or evidence.hit_time_limit:
        return None
    said = evidence.scheduler_reason
    return Verdict(Status.CRASHED, f"{reason} ({said})" if said else reason)


def _other(evidence: Evidence, lines: list[_Line]) -> Verdict:
    code = evidence.exit_code
    if code == 0 and evidence.report_fault is not None:
        return Verdict(Status.CRASHED, evidence.report_fault)
    rank, exit_code = _root_cause(lines)
    if exit_code is not None:
        return Verdict(Status.CRASHED, f"rank {rank} ended with {signal_name(exit_code)}")
    last = next((line for line in lines if is_lost_peer(line.text)), None)
    if last is not None:
        return Verdict(Status.CRASHED, _quote(last))
    said = f" ({evidence.scheduler_reason})" if evidence.scheduler_reason else ""
    if code is None:
        return Verdict(Status.CRASHED, f"ended without an exit code{said}")
    return Verdict(Status.CRASHED, f"ended with {signal_name(code)} and no error in any log{said}")


def _lines(log: Log) -> Iterator[_Line]:
    for text in log.text.splitlines():
        match = _PREFIX.match(text)
        if match is None:
            yield _Line(log.rank, text)
        else:
            yield _Line(int(match.group(1) or match.group(2)), text[match.end() :])


def _root_cause(lines: list[_Line]) -> tuple[int | None, int | None]:
    """Rank and exit code of what torchrun names as the first failure; None where it doesn't."""
    for at, line in enumerate(lines):
        if _ROOT_CAUSE.search(line.text):
            text = "\n".join(following.text for following in lines[at + 1 : at + 8])
            rank, code = _ROOT_RANK.search(text), _ROOT_EXIT.search(text)
            return (
                int(rank.group(1)) if rank else None,
                int(code.group(1)) if code else None,
            )
    return None, None


def _quote(line: _Line) -> str:
    text = " ".join(line.text.split())
    shown = text if len(text) <= _QUOTE else text[: _QUOTE - 3] + "..."
    return shown if line.rank is None else f"rank {line.rank}: {shown}"
