"""Logs as streams: the lines of one process in order, with the steps that it reported.

A log of many ranks holds several streams, told apart by the labels of its lines; lines without a
label are one stream of their own. Lines that quote source code, as tracebacks do, are left out:
what a program says in its source has not happened.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from parabolt.frameworks.log_line import log_lines
from parabolt.trials.endings.memory import WITH_FIGURE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from parabolt.trials.endings.ending import Log

#: What loggers write before a message: levels, brackets, times, files with line numbers.
_LEVEL = r"(?:DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)\b"
_LOGGER_WORD = re.compile(
    rf" *(?:\[[^\[\]]{{1,120}}\]|{_LEVEL}|root:|[A-Za-z_][\w.]{{0,60}} - (?={_LEVEL})"
    r"|(?:\d{4}-)?\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(?:[.,]\d+)?"
    r"|[\w.<>]{1,60}:[\w<>]{1,60}:\d+(?= - )"
    r"|[\w./-]{1,120}\.(?:py|cc|cpp|cu|h|hpp):\d+[\])]?)(?::(?=\s|[A-Za-z_]))?(?: *[-|](?= ))?"
)
#: The tree that Python draws of an exception group.
_TREE = re.compile(r"^ *\| ?")
#: Frames and trees that rich, exception groups and vLLM draw at the left of a traceback.
_DRAWN = r"[ |+│╭╰❱]"
_TRACEBACK = re.compile(r"Traceback \(most recent call last\)")
_FRAME = re.compile(rf"^(?:\s|{_DRAWN}|\^|~)")
_MARKS = re.compile(r"^[\s^~|│]*$")
#: Most lines of the message of an exception that are looked at.
_MESSAGE_LINES = 8
_FILE = re.compile(r'^\s*File "[^"]*", line \d+')
_NATIVE_FRAME = re.compile(r"^\s*(?:frame )?#\d+[: ]")
_CHAIN = re.compile(
    r"^(?:During handling of the above exception, another exception occurred"
    r"|The above exception was the direct cause of the following exception)"
)
#: Announcements of a traceback that ended nothing but a thread, a callback or a destructor.
_PASSING = re.compile(
    r"Exception ignored in|Exception in thread|--- Logging error ---|Error in atexit"
    r"|Exception in callback|exception was never retrieved|Exception ignored on"
)
_RAISED = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:: ?.*)?$")

#: A step that a program reports. The words stand at the beginning of the message, or the line
#: holds a figure that is measured once a step.
_STEP = re.compile(
    r"(?i)(?<!\w)(?P<word>(?:global_?|train(?:ing)?[ _]?)?(?:step|iter(?:ation)?|batch)s?|its)"
    r"(?: |[=:#\[]|: |\]: )*(?P<number>\d{1,9})\b(?!\.\d)"
)
_FIGURE = re.compile(
    r"(?i)\b(?:loss|lr|learning.rate|grad.?norm|tokens|tps|tflops|mfu|elapsed|throughput"
    r"|samples?(?:/| per )s|s/it|it/s|sec|ms|time)\b"
)
_FAIRSEQ = re.compile(r"epoch \d+: +(?P<number>\d+) / \d+ loss=")
_BAR = re.compile(r"(?<!\d)(?P<number>\d{1,9})/(?P<total>\d{1,9}) \[\d+:\d\d")
#: Whoever reports trouble uses one of these words; other lines are not looked at any further.
_TROUBLE = (
    "abort", "alloc", "assert", "broken pipe", "cancel", "cannot", "can't", "closed", "connect",
    "could not", "critical", "died", " down", "dumped", "ecc ", "ecc_", "ei00", "el00", "eof",
    "error", "evict", "exce", "exit", "expired", "fail", "fatal", "gpus are", "handle", "hang",
    "hbm", "hccl", "ibv_", "interrupt", "invalid", "joined", "kill", "lost", "memory", "mismatch",
    "nccl warn", "no route", "no such", "no space", "not found", "not in struct", "not responding",
    "not yet init", "off the bus", "oom", "out of", "out_of", "override", "permission", "preempt",
    "ran out", "reclaim", "refused", "rendezvous", "requeue", "reset", "resource", "root cause",
    "runlimit", "salloc", "sbatch", "segmentation", "signal", "slurmstepd", "srun", "stale",
    "stuck", "terminat", "time limit", "time out", "timed out", "timeout", "times out",
    "timing out", "traceback", "unable", "unavailable", "unreachable", "unrecognized", "usage",
    "walltime", "watchdog", "what()", "xid", "counter exceeded", "207001", "misconfig",
)  # fmt: skip
_DOTTED = re.compile(r"[a-z_]\w*\.[\w.]*: ")
_CLOCK = re.compile(r"(?:(\d{4}[-/]\d{2}[-/]\d{2})[T _])?(?<!\d)(\d{2}:\d{2}:\d{2}(?:[.,]\d+)?)")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a log.

    Attributes:
        text: What the program wrote, without what launchers put before it.
        rank: Whose it is; None where nothing says it.
        order: Position among the lines of all logs.
        log: Number of its log.
        clock: Date and time that stand in it, as text that sorts; empty if there are none.
        is_suspect: Whether it may report trouble; of all others it is certain that they don't.
    """

    text: str
    rank: int | None
    order: int
    log: int
    clock: str
    is_suspect: bool


@dataclass(frozen=True, slots=True)
class Step:
    """A step that a line reports.

    Attributes:
        line: The line.
        series: What is counted: lines of one format, or progress bars of one length.
        number: How far it is.
    """

    line: Line
    series: str
    number: int


@dataclass(frozen=True)
class Raised:
    """An exception that a traceback ends with.

    Attributes:
        lines: Its line, and those that continue its message.
        is_passing: Whether it ended a thread or a destructor, not the program.
        is_chained: Whether it was raised while the one before it was handled.
        source: The source line that raised it; empty where it isn't shown.
    """

    lines: tuple[Line, ...]
    is_passing: bool
    is_chained: bool
    source: str

    @property
    def message(self) -> str:
        """The whole message."""
        return "\n".join(plain(line.text) for line in self.lines)


@dataclass(frozen=True)
class Stream:
    """The lines of one process, as far as they can be told apart.

    Attributes:
        rank: Whose they are; None where nothing says it.
        lines: In order; all that isn't quoted source.
        raised: The exceptions of its tracebacks.
    """

    rank: int | None
    lines: tuple[Line, ...]
    raised: tuple[Raised, ...]


def streams_of(logs: Sequence[Log]) -> list[Stream]:
    """The streams of all logs, in the order of their first lines."""
    groups: dict[tuple[int, int | None, str], list[Line]] = {}
    order = 0
    for number, log in enumerate(logs):
        for line in log_lines([log.text]):
            rank = line.rank if log.rank is None else log.rank
            source = line.source if rank is None else ""
            low = line.text.lower()
            is_suspect = any(word in low for word in _TROUBLE) or bool(_DOTTED.match(line.text))
            clock = _sortable(_CLOCK.search(line.raw)) if is_suspect else ""
            groups.setdefault((number, rank, source), []).append(
                Line(line.text, rank, order, number, clock, is_suspect)
            )
            order += 1
    return [_stream(rank, lines) for (_, rank, _), lines in groups.items()]


def steps_in(lines: Iterable[Line]) -> Iterator[Step]:
    """The steps that lines report."""
    for line in lines:
        text = plain(line.text)
        if bar := _BAR.search(text):
            yield Step(line, f"bar of {bar['total']}", int(bar["number"]))
        elif match := _FAIRSEQ.search(text):
            yield Step(line, "fairseq", int(match["number"]))
        elif match := _step(text) or _step(line.text):
            yield Step(line, match["word"].lower().rstrip("s"), int(match["number"]))


def _step(text: str) -> re.Match[str] | None:
    match = _STEP.search(text)
    is_one = match and (not text[: match.start()].strip() or _FIGURE.search(text))
    return match if is_one else None


def plain(text: str) -> str:
    """A message without what its logger put before it; its indentation stays."""
    text = _TREE.sub("", text)
    at = 0
    while match := _LOGGER_WORD.match(text, at):
        at = match.end()
    return text[at + 1 :] if at and text[at : at + 1] == " " else text[at:]


def _sortable(clock: re.Match[str] | None) -> str:
    return "" if clock is None else f"{clock[1] or ''} {clock[2]}".replace("/", "-")


def _stream(rank: int | None, lines: list[Line]) -> Stream:
    kept: list[Line] = []
    raised: list[Raised] = []
    is_chained = is_passing = False
    at = 0
    while at < len(lines):
        line, text = lines[at], plain(lines[at].text)
        at += 1
        if _CHAIN.match(text.lstrip(" |")):
            is_chained = True
        elif header := _TRACEBACK.search(text):
            if text[: header.start()].strip(" ╭─"):
                kept.append(replace(line, text=text[: header.start()]))  # a bar without its end
            end = _end_of_frames(lines, at)
            kept += [x for x in lines[at:end] if x.is_suspect and WITH_FIGURE.search(x.text)]
            if end < len(lines) and _RAISED.match(plain(lines[end].text)):
                source = _source(lines[at:end])
                raised.append(Raised(_message(lines, end), is_passing, is_chained, source))
            at, is_chained, is_passing = end, False, False
        elif _FILE.match(text):
            at += at < len(lines) and _is_source(lines[at])
        elif not _NATIVE_FRAME.match(text):
            is_passing = bool(_PASSING.search(text))
            kept.append(line)
    return Stream(rank, tuple(kept), tuple(raised))


def _is_source(line: Line) -> bool:
    """Whether the line after one that names a file shows its source."""
    return bool(_FRAME.match(plain(line.text))) and not WITH_FIGURE.search(line.text)


def _end_of_frames(lines: list[Line], at: int) -> int:
    """Where the frames of a traceback that begin at `at` end: the line of the exception."""
    while at < len(lines) and _FRAME.match(plain(lines[at].text)):
        at += 1
    return at


def _message(lines: list[Line], at: int) -> tuple[Line, ...]:
    """The line of an exception, and those that continue its message."""
    end = at + 1
    while end < len(lines) and end < at + _MESSAGE_LINES:
        text = plain(lines[end].text)
        if text != lines[end].text or _TRACEBACK.search(text) or _CHAIN.match(text):
            break
        end += 1
    return tuple(lines[at:end])


def _source(frames: list[Line]) -> str:
    """The innermost source line of a traceback; empty where it isn't shown."""
    texts = [plain(line.text) for line in frames]
    shown = [text for text in texts if not _MARKS.match(text)]
    return "" if not shown or _FILE.match(shown[-1]) else shown[-1].strip()
