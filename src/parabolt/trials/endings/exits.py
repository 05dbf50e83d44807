"""How processes ended, from exit codes and from what launchers, shells and loaders say of them."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from parabolt.trials.endings.streams import Line

#: Signals by the words that C libraries and Slurm have for them.
_WORDS = {
    "killed": signal.SIGKILL,
    "terminated": signal.SIGTERM,
    "aborted": signal.SIGABRT,
    "segmentation fault": signal.SIGSEGV,
    "bus error": signal.SIGBUS,
    "floating point exception": signal.SIGFPE,
    "illegal instruction": signal.SIGILL,
    "hangup": signal.SIGHUP,
    "out of memory": signal.SIGKILL,
}
_WORD = r"(?P<word>[Kk]illed|[Tt]erminated|[Aa]borted|[Ss]egmentation fault|[Bb]us error"
_WORD += r"|[Ff]loating point exception|[Ii]llegal instruction|[Hh]angup|Out Of Memory)"

#: What each tool says of a process that ended; `code`, `signal` (a number), `name` or `word` say
#: how, and `rank` or `local` (the rank within a host) whose it was.
_EXPRESSIONS = tuple(
    re.compile(text)
    for text in (
        # torchrun, in one line; its summary takes several and is read apart
        r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<local>\d+)",
        r"Signal (?P<signal>\d+) \(SIG[A-Z]+\) received by PID",
        # DeepSpeed's launcher
        r"(?:--local_rank=(?P<local>\d+).*)?exits with return code = (?P<code>-?\d+)",
        # Python's subprocess (accelerate), multiprocessing, torch.multiprocessing
        r"returned non-zero exit status (?P<code>\d+)",
        r"died with (?:<Signals\.)?(?P<name>SIG[A-Z]+)\b",
        r"process (?P<rank>\d+) terminated with signal (?P<name>SIG[A-Z]+)",
        r"process (?P<rank>\d+) terminated with exit code (?P<code>\d+)",
        # a data loader's worker
        rf"killed by signal: {_WORD}",
        r"(?P<vanished>DataLoader worker \(pid(?:\(s\))? [\d, ]+\) exited unexpectedly)",
        # Slurm's srun
        rf"srun: error: \S+: tasks? (?P<rank>\d+)[^:]*: {_WORD}",
        r"srun: error: \S+: tasks? (?P<rank>\d+)[^:]*: Exited with exit code (?P<code>\d+)",
        # Open MPI, MPICH
        r"process rank (?P<rank>\d+) .*exited on signal (?P<signal>\d+)",
        r"KILLED BY SIGNAL: (?P<signal>\d+)",
        # shells; systemd; containers
        rf"^(?:\S+: line \d+: +)?\d+ +{_WORD}(?: .*)?$",
        rf"^{_WORD}(?: \(core dumped\))?\.?$",
        r"(?:code=killed, (?:status|signal)=|exited with code |exit code:? )(?P<code>137|247)\b",
    )
)
_ROOT_CAUSE = re.compile(r"Root Cause \(first observed failure\)")
_ROOT_RANK = re.compile(r"rank\s*:\s*(\d+)")
_ROOT_EXIT = re.compile(r"exitcode\s*:\s*(-?\d+)")
#: Lines of torchrun's summary after its heading.
_ROOT_LINES = 7


@dataclass(frozen=True)
class ProcessEnd:
    """How a process ended.

    Attributes:
        rank: Whose process it was; None where nothing says it.
        exit_code: Its exit code, negative for a signal. A process that only vanished counts as
            killed, as one that the kernel kills does.
        local_rank: Whose it was within its host; None where nothing says it.
        is_root: Whether the launcher calls it the first that failed.
    """

    rank: int | None
    exit_code: int
    local_rank: int | None = None
    is_root: bool = False

    @property
    def was_killed(self) -> bool:
        """Whether it was killed outright."""
        return signal_of(self.exit_code) == signal.SIGKILL

    def __str__(self) -> str:
        who = "a process" if self.local_rank is None else f"local rank {self.local_rank}"
        if self.rank is not None:
            who = f"rank {self.rank}"
        return f"{who} ended with {exit_in_words(self.exit_code)}"


def signal_of(exit_code: int) -> int | None:
    """The signal that an exit code stands for; None for an exit of the program's own.

    A signal n is -n in Python, 128 + n in a shell, and 256 - n where a negative exit code was cut
    to a byte. 255 is no signal: programs that failed give it.
    """
    if exit_code < 0:
        number = -exit_code
    elif exit_code >= 192:
        number = 256 - exit_code if exit_code < 255 else 0
    else:
        number = exit_code - 128
    try:
        return signal.Signals(number)
    except ValueError:
        return None


def exit_in_words(exit_code: int) -> str:
    """What an exit code says, such as `signal SIGKILL` or `exit code 1`."""
    number = signal_of(exit_code)
    return f"exit code {exit_code}" if number is None else f"signal {signal.Signals(number).name}"


def exits_in(lines: Sequence[Line]) -> list[ProcessEnd]:
    """Every end of a process that the lines tell of, in order."""
    return list(_exits(lines))


def first_of(ends: Sequence[ProcessEnd]) -> ProcessEnd | None:
    """The end that the launcher calls the first, or tells of first; None if it tells of none."""
    return next((end for end in ends if end.is_root), None) or next(iter(ends), None)


def _exits(lines: Sequence[Line]) -> Iterator[ProcessEnd]:
    for at, line in enumerate(lines):
        if _ROOT_CAUSE.search(line.text):
            text = "\n".join(following.text for following in lines[at + 1 : at + 1 + _ROOT_LINES])
            rank, code = _ROOT_RANK.search(text), _ROOT_EXIT.search(text)
            if rank and code:
                yield ProcessEnd(int(rank[1]), int(code[1]), is_root=True)
        if line.is_suspect and (end := _exit(line)) is not None:
            yield end


def _exit(line: Line) -> ProcessEnd | None:
    match = next((m for e in _EXPRESSIONS if (m := e.search(line.text))), None)
    if match is None:
        return None
    said = {name: text for name, text in match.groupdict().items() if text is not None}
    rank = int(said["rank"]) if "rank" in said else line.rank
    local_rank = int(said["local"]) if "local" in said else None
    return ProcessEnd(rank, _exit_code(said), local_rank=local_rank)


def _exit_code(said: dict[str, str]) -> int:
    if "code" in said:
        return int(said["code"])
    if "signal" in said:
        return -int(said["signal"])
    if "name" in said:
        return -int(signal.Signals.__members__.get(said["name"], signal.SIGTERM))
    return -int(_WORDS[said["word"].lower()]) if "word" in said else -int(signal.SIGKILL)
