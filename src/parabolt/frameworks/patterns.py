r"""Logs that only their owner's regular expressions can read.

An expression is searched in each line and says by named groups what it found: `step` with one of
`STEP_GROUPS`, or one or more of `MEMORY_GROUPS`, with `rank` where the line says whose they are. A
group takes in a number whole: what it leaves out of `1,234`, `12.5` or `11.5K` is an error.
"""

from __future__ import annotations

import re
import signal
import threading
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

from parabolt.documents import shown
from parabolt.errors import SpecError
from parabolt.frameworks.log_format import LogFormat, LogReader, MemoryRecord, StepRecord
from parabolt.frameworks.measurements import ReportError
from parabolt.frameworks.quantities import (
    HUMAN,
    MEMORY_GIB,
    memory_gib,
    quantity,
    whole_number,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from parabolt.frameworks.log_format import Record
    from parabolt.frameworks.log_line import LogLine
    from parabolt.instances.specs import Instance

_PER_STEP = ("", "/it", "/iter", "/iteration", "/step", "/batch")
_SECONDS = {f"{s}{per}": 1.0 for s in ("s", "sec", "secs", "seconds") for per in _PER_STEP}
_MS = {f"{ms}{per}": 1.0 for ms in ("ms", "msec", "milliseconds") for per in _PER_STEP}
#: Groups that say how long a step takes, with the units that may stand in the text: seconds,
#: milliseconds, iterations/s, samples/s and tokens/s of the whole job, tokens/s per GPU.
STEP_GROUPS: dict[str, Mapping[str, float]] = {
    "seconds": HUMAN | _SECONDS,
    "milliseconds": HUMAN | _MS,
    "iterations_per_s": HUMAN | {"it/s": 1.0, "iter/s": 1.0, "steps/s": 1.0},
    "samples_per_s": HUMAN | {"samples/s": 1.0},
    "tokens_per_s": HUMAN | {"tok/s": 1.0, "tokens/s": 1.0},
    "tokens_per_gpu_s": HUMAN | {"tok/s": 1.0, "tokens/s": 1.0},
}
#: Groups that say how much memory was used: 1e9 bytes, MiB, GiB, or what the unit in the text says.
MEMORY_GROUPS: dict[str, Mapping[str, float]] = {
    "memory_gb": {"": 1e9 / 2**30, "G": 1e9 / 2**30, "GB": 1e9 / 2**30},
    "memory_mib": {"": 2**-10, "M": 2**-10, "MB": 2**-10, "MiB": 2**-10},
    "memory_gib": {"": 1.0, "G": 1.0, "GB": 1.0, "GiB": 1.0},
    "memory": MEMORY_GIB,
}
#: The rest of a number, or its unit, directly behind a group.
_REST = re.compile(r"[.]\d|\d|[eE][-+]?\d|[A-Za-zµ%]{1,12}(?:/[a-z]{1,12})?")
#: Longest search of one line, in seconds of computing.
_LONGEST_S = 1.0
_THOUSANDS = re.compile(r",\d{3}(?!\d)")


def patterns_format(patterns: tuple[str, ...]) -> LogFormat:
    """The format of regular expressions.

    Raises:
        SpecError: For an expression that doesn't compile or lacks the groups.
    """
    compiled = tuple(_compiled(text) for text in patterns)
    has_memory = any(set(pattern.groupindex) & set(MEMORY_GROUPS) for pattern in compiled)
    return LogFormat(lambda instance: _PatternsReader(instance, compiled), has_memory)


def _compiled(text: str) -> re.Pattern[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of what another Python will read in another way
            pattern = re.compile(text)
    except (re.error, OverflowError, RecursionError, Warning) as error:
        raise SpecError(f"pattern {shown(text)}: {error}") from error
    groups = set(pattern.groupindex)
    known = {"step", "rank", *STEP_GROUPS, *MEMORY_GROUPS}
    finds_step = "step" in groups and len(groups & set(STEP_GROUPS)) == 1
    if groups - known or not (finds_step or groups & set(MEMORY_GROUPS)):
        raise SpecError(
            f"pattern {text!r}: expected the named group step with one of "
            f"{', '.join(STEP_GROUPS)}, or one of {', '.join(MEMORY_GROUPS)}; "
            f"got {', '.join(sorted(groups)) or 'none'}"
        )
    return pattern


class _PatternsReader(LogReader):
    def __init__(self, instance: Instance, patterns: tuple[re.Pattern[str], ...]) -> None:
        super().__init__(instance)
        self._patterns = patterns

    def read(self, line: LogLine) -> Iterator[Record]:
        for pattern in self._patterns:
            with _at_most(_LONGEST_S, pattern.pattern):
                matches = list(pattern.finditer(line.raw))
            for match in matches:
                yield from self._records(match)

    def _records(self, match: re.Match[str]) -> Iterator[Record]:
        found = {name: text for name, text in match.groupdict().items() if text is not None}
        for name in STEP_GROUPS:
            if name in found and "step" in found:
                yield StepRecord(whole_number(found["step"]), self._seconds(match, name))
        rank = whole_number(found["rank"]) if "rank" in found else None
        for name, units in MEMORY_GROUPS.items():
            if name in found and (gib := memory_gib(_whole(match, name, units), units)) is not None:
                yield MemoryRecord(gib, rank)

    def _seconds(self, match: re.Match[str], group: str) -> float:
        units = STEP_GROUPS[group]
        value = quantity(_whole(match, group, units), units)
        match group:
            case "seconds":
                return value
            case "milliseconds":
                return value / 1e3
            case "iterations_per_s":
                return self.iterations_seconds(value)
            case "samples_per_s":
                return self.samples_seconds(value)
            case "tokens_per_s":
                return self.tokens_seconds(value)
            case _:
                return self.tokens_per_gpu_seconds(value)


@contextmanager
def _at_most(seconds: float, pattern: str) -> Iterator[None]:
    """Ends a search of a regular expression after so many seconds of computing.

    An expression with repeats inside repeats may take longer than anybody lives, on a line of a few
    dozen characters. A timer can only interrupt the main thread.

    Raises:
        ReportError: If it took longer.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise ReportError(
            f"the pattern {pattern!r} takes more than {seconds:g} s on one line; try one without "
            "repeats inside repeats, such as (a+)+"
        )

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


def _whole(match: re.Match[str], group: str, units: Mapping[str, float]) -> str:
    """The text of a group that takes in a number whole; its own unit may follow the group."""
    text, behind = match[group], match.string[match.end(group) : match.end(group) + 32]
    rest = _REST.match(behind)
    if rest and units.get(rest[0]) == units.get("", units.get(rest[0])) is not None:
        return text
    if rest is None and text.isdigit() and len(text) <= 3:
        rest = _THOUSANDS.match(behind)
    if rest:
        raise ReportError(
            f"the group {group} takes {text!r} of {text + rest[0]!r}; try to take in all of it"
        )
    return text
