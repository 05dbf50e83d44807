"""How a trial ended, decided from all that it left.

In order: finished with enough steps; stopped; out of memory on any rank; a place that was lost; the
first error of a rank that wasn't merely left alone by another; a hung collective; the time limit;
what the exit codes say. Memory is asked before all other failures, because a rank that runs out of
it takes the others down with errors that look like anything else. What a rank went past, as its
later steps show, ended nothing.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

from parabolt.outcome import Status
from parabolt.trials.endings import messages
from parabolt.trials.endings.exits import exit_in_words, exits_in, first_of, signal_of
from parabolt.trials.endings.failures import Account, Kind, shown
from parabolt.trials.endings.memory import Weight
from parabolt.trials.endings.streams import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from parabolt.trials.endings.ending import Ending
    from parabolt.trials.endings.exits import ProcessEnd
    from parabolt.trials.endings.failures import Failure
    from parabolt.trials.endings.streams import Line

#: Longest quotation from a log.
_QUOTE = 300
#: Slurm's states of a job that lost its place through no fault of its own.
_LOST_PLACE = {
    "NODE_FAIL": "a node of the job failed",
    "BOOT_FAIL": "a node of the job failed to boot",
    "PREEMPTED": "the job was preempted",
    "CANCELLED": "the job was cancelled by somebody else",
    "REVOKED": "the job was revoked",
    "LAUNCH_FAILED": "the scheduler could not launch the job",
}
#: Signals by which a collective's watchdog ends its own process, and others end one.
_OF_OTHERS = (signal.SIGABRT, signal.SIGTERM)
#: Exit code of coreutils' `timeout` when its limit has passed.
_TIMEOUT_CODE = 124
_STATUS = {
    Kind.REJECTION: Status.INVALID,
    Kind.FAULT_OF_PLACE: Status.NODE,
    Kind.OWN: Status.CRASHED,
}


@dataclass(frozen=True)
class Verdict:
    """How a trial ended, and why.

    Attributes:
        status: The status.
        reason: One line that says why, quoting the log; empty where all went well.
    """

    status: Status
    reason: str = ""


def decide(ending: Ending) -> Verdict:
    """The verdict on a trial."""
    finished = ending.exit_code == 0 and ending.report_fault is None
    if finished and ending.scheduler_state in (None, "COMPLETED"):
        return Verdict(Status.OK)
    if ending.was_stopped:
        return Verdict(Status.STOPPED, "could not beat the best one any more")
    account = Account(ending.logs)
    exits = exits_in(account.lines)
    return (
        _out_of_memory(ending, account, exits)
        or _lost_place(ending, account)
        or _own_error(ending, account, exits)
        or _timeout(ending, account)
        or _rest(ending, account, exits)
    )


def _out_of_memory(ending: Ending, account: Account, exits: Sequence[ProcessEnd]) -> Verdict | None:
    fatal = [s.line for s in account.shortages if s.weight is Weight.FATAL]
    if fatal:
        own = [line for line in fatal if not messages.is_launcher(plain(line.text))]
        return Verdict(Status.OOM, _quote((own or fatal)[0]))
    if "OUT_OF_MEMORY" in (ending.scheduler_state, ending.scheduler_reason) or (
        ending.scheduler_reason == "OutOfMemory"
    ):
        return Verdict(Status.OOM, "the scheduler killed the job for lack of host memory")
    if ending.n_host_oom_kills and _was_killed(ending, exits):
        n = ending.n_host_oom_kills
        return Verdict(
            Status.OOM, f"the kernel killed {n} process{'es' * (n > 1)} for lack of memory"
        )
    warning = next((s for s in account.shortages if s.weight is Weight.WARNING), None)
    if warning is not None and not _hit_limit(ending, account):
        return Verdict(Status.OOM, _quote(warning.line))
    return None


def _was_killed(ending: Ending, exits: Sequence[ProcessEnd]) -> bool:
    code = ending.exit_code
    is_own = code is not None and signal_of(code) == signal.SIGKILL
    return is_own or any(end.was_killed for end in exits)


def _lost_place(ending: Ending, account: Account) -> Verdict | None:
    """A verdict that the run lost its place: by the scheduler's state, or by failed hardware."""
    reason = _LOST_PLACE.get(ending.scheduler_state or "")
    if reason is not None and not ending.hit_time_limit:
        by = f" ({ending.scheduler_reason})" if ending.scheduler_reason else ""
        return Verdict(Status.NODE, f"{reason}{by}")
    failed = next((f for f in account.failures if messages.is_hardware(f.message)), None)
    return None if failed is None else Verdict(Status.NODE, _quote(failed.line, failed.shown))


def _own_error(ending: Ending, account: Account, exits: Sequence[ProcessEnd]) -> Verdict | None:
    """The error that no other rank caused, of the rank that failed first."""
    limit = _hit_limit(ending, account)
    own = [f for f in account.failures if f.kind in _STATUS]
    if any(f.kind in (Kind.HUNG, Kind.FAULT_OF_PLACE) for f in account.failures):
        own = [f for f in own if not messages.is_symptom(f.message)]
    if ending.exit_code == 0:
        own = [f for f in own if f.is_exception]
    if limit:
        own = [
            f
            for f in own
            if f.is_exception
            and (f.line.rank is not None or (f.has_traceback and not account.is_followed(f)))
        ]
    root = first_of(exits)
    first = _first([f for f in own if f.is_exception], root)
    if first is None and not limit and (killed := _killed(ending, root)):
        return Verdict(Status.CRASHED, killed)
    first = first or _first(own, root)
    if first is None:
        return None
    status = _STATUS[first.kind]
    if status is Status.INVALID and (account.has_begun or ending.has_steps):
        status = Status.CRASHED
    return Verdict(status, _told(ending, first, own))


def _killed(ending: Ending, root: ProcessEnd | None) -> str:
    """By which signal the first process ended, unless others sent it; empty for another end."""
    code = ending.exit_code if root is None else root.exit_code
    if code is None or ending.exit_code == 0:
        return ""
    number = signal_of(code)
    if number is None or number in _OF_OTHERS:
        return ""
    return _no_error(ending, code) if root is None else str(root)


def _no_error(ending: Ending, code: int) -> str:
    said = f" ({ending.scheduler_reason})" if ending.scheduler_reason else ""
    return f"ended with {exit_in_words(code)} and no error in any log{said}"


def _first(failures: Sequence[Failure], root: ProcessEnd | None) -> Failure | None:
    """The first failure of the rank that a launcher names, or else of the earliest rank."""
    if root is not None and root.rank is not None:
        named = next((f for f in failures if f.line.rank == root.rank), None)
        if named is not None:
            return named
    by_rank: dict[tuple[int, int | None], Failure] = {}
    for failure in failures:
        by_rank.setdefault((failure.line.log, failure.line.rank), failure)
    firsts = list(by_rank.values())
    if all(f.line.clock for f in firsts):
        return min(firsts, key=lambda f: f.line.clock, default=None)
    return next(iter(firsts), None)


def _told(ending: Ending, first: Failure, own: Sequence[Failure]) -> str:
    """The reason that an error gives, with what NCCL had said before it."""
    warning = next(
        (
            f
            for f in own
            if "NCCL WARN" in f.message
            and f.line.rank in (None, first.line.rank)
            and f.line.order < first.line.order
        ),
        None,
    )
    reason = _quote(first.line, first.shown)
    if warning is not None and "NCCL" in first.message:
        reason = f"{_quote(warning.line, warning.shown)}; {reason}"
    if ending.exit_code == 0 and ending.report_fault is not None:
        reason = f"{ending.report_fault}; the log has {reason}"
    return reason


def _timeout(ending: Ending, account: Account) -> Verdict | None:
    hung = next((f for f in account.failures if f.kind is Kind.HUNG), None)
    if hung is not None:
        return Verdict(Status.TIMEOUT, f"a collective hung; {_quote(hung.line, hung.shown)}")
    if ending.hit_time_limit or ending.scheduler_state in ("TIMEOUT", "DEADLINE"):
        return Verdict(Status.TIMEOUT, "hit the time limit")
    said = _limit_line(account)
    if said is not None:
        return Verdict(Status.TIMEOUT, f"hit a time limit; {_quote(said)}")
    if ending.exit_code == _TIMEOUT_CODE:
        return Verdict(Status.TIMEOUT, f"exit code {_TIMEOUT_CODE}, as of a time limit")
    return None


def _hit_limit(ending: Ending, account: Account) -> bool:
    return (
        ending.hit_time_limit
        or ending.scheduler_state in ("TIMEOUT", "DEADLINE")
        or _limit_line(account) is not None
    )


def _limit_line(account: Account) -> Line | None:
    return next((x for x in account.lines if x.is_suspect and messages.is_time_limit(x.text)), None)


def _rest(ending: Ending, account: Account, exits: Sequence[ProcessEnd]) -> Verdict:
    """What is left: memory that was only spoken of, a report with a fault, exit codes."""
    spoken = next(iter(account.shortages), None)
    if spoken is not None and ending.exit_code != 0:
        return Verdict(Status.OOM, _quote(spoken.line))
    code = ending.exit_code
    if code == 0 and ending.report_fault is not None:
        return Verdict(Status.CRASHED, ending.report_fault)
    root = first_of(exits)
    is_own_exit = root is None or signal_of(root.exit_code) is None
    if account.unclear and is_own_exit and code != 0:
        return Verdict(Status.OOM, _quote(account.unclear[0]))
    lost = next((f for f in account.failures if f.kind is Kind.LOST_PEER), None)
    if root is not None and (root.is_root or lost is None):
        return Verdict(Status.CRASHED, str(root))
    if lost is not None:
        return Verdict(Status.CRASHED, _quote(lost.line, lost.shown))
    if code is None:
        said = f" ({ending.scheduler_reason})" if ending.scheduler_reason else ""
        return Verdict(Status.CRASHED, f"ended without an exit code{said}")
    return Verdict(Status.CRASHED, _no_error(ending, code))


def _quote(line: Line, text: str = "") -> str:
    said = " ".join((text or shown(line)).split())
    if len(said) > _QUOTE:
        said = said[: _QUOTE - 3] + "..."
    return said if line.rank is None else f"rank {line.rank}: {said}"
