"""The failures that the logs tell of: what was raised or complained of, and never gone past."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

from parabolt.trials.endings import messages
from parabolt.trials.endings.memory import Weight, weight_of
from parabolt.trials.endings.reported_steps import ReportedSteps
from parabolt.trials.endings.streams import plain, steps_in, streams_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from parabolt.trials.endings.ending import Log
    from parabolt.trials.endings.streams import Line, Raised, Stream

#: Classes of exceptions that lack of memory never causes: a program that raises one after a message
#: of lacking memory had gone on.
_NEVER_OF_MEMORY = (
    "ImportError", "ModuleNotFoundError", "SyntaxError", "IndentationError", "FileNotFoundError",
    "NotADirectoryError", "IsADirectoryError", "PermissionError",
)  # fmt: skip
#: Lines around one of `torch.compile`'s autotuner, which goes on after any failure of a kernel.
_AUTOTUNER = ("during autotuning", "Ignoring this choice")


class Kind(Enum):
    """What a failure is."""

    REJECTION = "rejection"
    FAULT_OF_PLACE = "fault of the place"
    OWN = "own"
    HUNG = "hung"
    LOST_PEER = "lost peer"


@dataclass(frozen=True)
class Failure:
    """A failure that one line tells of.

    Attributes:
        line: The line.
        message: The line and what continues its message.
        shown: What is quoted of it as a reason.
        kind: What it is.
        is_exception: Whether it is an exception or the death of a program, not a mere complaint.
        end: Position of the last line of its message.
        has_traceback: Whether a traceback leads to it.
    """

    line: Line
    message: str
    shown: str
    kind: Kind
    is_exception: bool
    end: int
    has_traceback: bool = False


@dataclass(frozen=True)
class Shortage:
    """A line that says that memory ran out.

    Attributes:
        line: The line.
        weight: How much it says.
    """

    line: Line
    weight: Weight


class Account:
    """What the logs of a trial say, all ranks together.

    Attributes:
        lines: All lines that aren't source code or stack frames, in order.
        failures: All failures that weren't gone past, in order.
        shortages: All lines about lacking memory that weren't gone past, in order.
        unclear: Lines that say for good that memory ran out, and that one single step follows where
            nothing says whose either is: another rank may have told of the step before late.
        has_begun: Whether any rank reported a step.
    """

    def __init__(self, logs: Sequence[Log]) -> None:
        streams = streams_of(logs)
        self.lines = sorted((x for s in streams for x in s.lines), key=lambda line: line.order)
        steps = [step for step in steps_in(self.lines) if not _is_trouble(step.line)]
        self.has_begun = bool(steps)
        steps_reported = ReportedSteps(steps)
        failures = [f for stream in streams for f in _failures(stream)]
        shortages = [s for stream in streams for s in _shortages(stream)]
        past = steps_reported.goes_past
        self.failures = sorted(
            (f for f in failures if not past(f.line)), key=lambda f: f.line.order
        )
        self.unclear = [
            s.line
            for s in shortages
            if s.weight is Weight.FATAL
            and s.line.rank is None
            and steps_reported.n_past(s.line) == 1
        ]
        self.shortages = sorted(
            (s for s in shortages if not past(s.line, by_anyone=s.weight < Weight.FATAL)),
            key=lambda s: s.line.order,
        )

    def is_followed(self, failure: Failure) -> bool:
        """Whether its stream goes on with ordinary lines, as after an error in passing."""
        last = self._last_ordinary.get((failure.line.log, failure.line.rank), -1)
        return last > failure.end

    @cached_property
    def _last_ordinary(self) -> dict[tuple[int, int | None], int]:
        """The last line of each stream that reports no trouble."""
        return {(x.log, x.rank): x.order for x in self.lines if not _is_trouble(x)}


def shown(line: Line) -> str:
    """What is quoted of a line: without its logger's words where it is a Python exception."""
    text = plain(line.text)
    return text if messages.is_python_exception(text) else line.text


def _is_trouble(line: Line) -> bool:
    text = plain(line.text)
    return messages.is_launcher(text) or (
        line.is_suspect
        and (
            messages.is_exception(text)
            or messages.is_complaint(line.text)
            or messages.is_lost_peer(text)
            or messages.is_collective_timeout(text)
            or messages.is_time_limit(line.text)
            or weight_of(line.text) is not Weight.NONE
        )
    )


def _failures(stream: Stream) -> Iterator[Failure]:
    raised = {r.lines[0].order: r for r in stream.raised}
    for at, line in enumerate(stream.lines):
        text, end = plain(line.text), line.order
        if line.order in raised:
            if not raised[line.order].is_passing and not messages.is_launcher(text):
                yield _of_traceback(raised[line.order])
        elif not line.is_suspect:
            continue
        elif messages.is_hardware(text):
            yield Failure(line, text, line.text, Kind.FAULT_OF_PLACE, is_exception=False, end=end)
        elif messages.is_launcher(text):
            continue
        elif messages.is_exception(text) or messages.is_usage(text):
            told = _with_what(stream.lines, at)
            yield Failure(line, told, told, _kind(told, ""), is_exception=True, end=end)
        elif (kind := _kind(text, "")) is not Kind.OWN or messages.is_complaint(line.text):
            yield Failure(line, text, line.text, kind, is_exception=False, end=end)


def _of_traceback(raised: Raised) -> Failure:
    line, source = raised.lines[0], raised.source
    text = plain(line.text)
    return Failure(
        line,
        raised.message,
        f"{text} ({source})" if source and ": " not in text else text,
        _kind(raised.message, source),
        is_exception=True,
        end=raised.lines[-1].order,
        has_traceback=True,
    )


def _with_what(lines: Sequence[Line], at: int) -> str:
    """What is shown of a line; of a C++ exception with what it says in the next one."""
    text = shown(lines[at])
    after = lines[at + 1].text.strip() if at + 1 < len(lines) else ""
    is_cpp = text.startswith("terminate called") and after.startswith("what():")
    return f"{text}; {after}" if is_cpp else text


def _kind(message: str, source: str) -> Kind:
    head = message.split("\n", 1)[0]
    # The errors of NCCL and of process groups say only in their further lines what happened.
    told = message if "NCCL" in head or "Dist" in head else head
    if messages.is_hardware(told) or messages.is_network(told):
        return Kind.FAULT_OF_PLACE
    if messages.is_collective_timeout(told):
        return Kind.HUNG
    if messages.is_lost_peer(told):
        return Kind.LOST_PEER
    return Kind.REJECTION if messages.is_rejection(message, source) else Kind.OWN


def _shortages(stream: Stream) -> Iterator[Shortage]:
    raised = {r.lines[0].order: r for r in stream.raised}
    # The last exception that shows that the program was alive, and failed for another reason.
    unrelated = max(
        (
            r.lines[0].order
            for r in stream.raised
            if not r.is_passing and not r.is_chained and _is_never_of_memory(r.message)
        ),
        default=-1,
    )
    for at, line in enumerate(stream.lines):
        own = raised.get(line.order)
        if own is None and not line.is_suspect:
            continue
        text = plain(line.text)
        is_exception = own is not None or messages.is_exception(text)
        # At whatever level a logger repeats it: the line of an exception says that it was raised.
        is_raised = own is not None or messages.is_python_exception(text)
        weight = weight_of(text if is_raised else line.text, is_exception=is_exception)
        if weight is Weight.NONE and is_exception:
            weight = weight_of(text, is_exception=True)
        if weight is Weight.NONE:
            continue
        around = [x.text for x in stream.lines[max(at - 1, 0) : at + 2]]
        is_handled = any(word in text for text in around for word in _AUTOTUNER)
        if is_handled or unrelated > line.order or (own is not None and own.is_passing):
            weight = min(weight, Weight.MENTION)
        yield Shortage(line, weight)


def _is_never_of_memory(message: str) -> bool:
    return message.split(":", 1)[0].strip().rsplit(".", 1)[-1] in _NEVER_OF_MEMORY
