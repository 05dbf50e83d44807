r"""Lines of a log, freed of what launchers and terminals add to them.

Between a program and the file that holds its output, each tool may put something before a line:
srun its task (`3: `), torchrun a rank (`[rank3]:`, `[default3]:`), pdsh a host (`node07: `), mpirun
a job and a rank (`[1,3]<stdout>:`), Ray an actor, Kubernetes a pod, and any of them the time. They
nest in every order. Terminals add colours, and progress bars carriage returns. All of it is taken
off here, for the readers of step times and for the verdict alike.

The work is linear in the length of the text: a prefix is matched only where the line begins, at
most `_MAX_PREFIXES` times, and an overlong line loses its middle before anything is matched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TextIO

#: Longest line in characters; of a longer one the first and the last half of it are kept.
MAX_LENGTH = 4_000
_HALF = MAX_LENGTH // 2
_CUT = " [...] "
#: Most prefixes of one line that are taken off.
_MAX_PREFIXES = 10

#: Colours, cursor movements, window titles and other commands to a terminal; backspaces; NUL.
_TERMINAL = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])|[\x00\x08]"
)
_END = re.compile(r"[\r\n]+")

_CLOCK = r"\d{1,2}:\d{2}:\d{2}(?:[.,]\d{1,9})?"
_DATE = r"(?:\d{4}[-/]\d{2}[-/]\d{2}|\d{2}/\d{2}/\d{2,4})"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_TIME = (
    rf"(?:{_DATE}[ T]{{1,2}}{_CLOCK}(?:Z|[+-]\d{{2}}:?\d{{2}}| [AP]M)?"
    rf"|(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?{_MONTH} {{1,2}}\d{{1,2}} {_CLOCK}(?: \d{{4}})?)"
)
_LEVEL = r"(?:DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)\b"
#: Words with a digit that a program writes before a colon, and that are no hosts.
_NO_HOST = r"(?!(?:b?fp|bf|u?int|float|step|iter|iteration|epoch|layer|gpu|cuda|rank|\d)\d*:)"

#: `rank`: a rank of the whole job. `task`: a number that is a rank where nothing else says one,
#: since a task of srun may be a whole host and torchrun's role has the rank within its host.
_PREFIX = re.compile(
    "|".join(
        [
            r"\[rank(?P<rank_torch>\d{1,7})\](?::[ ]?|[ ]|(?=\[))",
            r"\[(?:[\w.-]{1,255}@)?\d{1,9},(?:mpirank:)?(?P<rank_mpirun>\d{1,7})"
            r"(?:,[\w.-]{1,64})?\]<std(?:out|err|diag)>:[ ]?",
            r"\[(?P<rank_mpich>\d{1,7})\](?::[ ]?|[ ])",
            r"\[(?![\w.-]{1,255}\.(?:py|cc|cpp|cu|h):)[\w.-]{1,255}:(?P<rank_host>\d{1,7})\]:[ ]?",
            r"[ ]{0,7}(?P<task_srun>\d{1,7}):(?:[ ]|$|(?=\[))",
            r"\[[A-Za-z]{1,32}(?P<task_role>\d{1,7})\]:[ ]?",
            # The time; a level in the same brackets stays.
            rf"(?P<time>\[{_TIME}\](?:[ ]?[-|:][ ]|:|[ ])?[ ]?|\[{_TIME}[ ](?={_LEVEL})"
            rf"|{_TIME}(?:[ ]std(?:out|err)[ ][FP](?:[ ]|$)|[ ]?[-|:][ ]|:?[ ]|(?=\[)|$)"
            rf"(?:[ ]{{1,4}}(?={_LEVEL}|\[))?"
            rf"|\[{_CLOCK}\](?::[ ]?|[ ])|{_CLOCK}[ ](?:[-|][ ])?"
            r"|\[[ ]{0,7}\d{1,9}\.\d{6}\][ ])",
            # Ray, kubectl, docker compose, torchx and NeMo-Run (`role/0 `), pdsh (a host has a
            # digit in its name, or stands before the time).
            r"(?P<place>\([A-Za-z_][\w.:<>]{0,127} pid=\d{1,9}(?:, ip=[\w.:]{1,64})?\)[ ]"
            r"|std(?:out|err):[ ]|\[pod/[\w./-]{1,255}\][ ]"
            r"|[a-z][\w.-]{0,127}[-_]\d{1,7}[ ]{1,8}\|[ ]"
            rf"|(?!step|iter|epoch|batch)[A-Za-z][\w.-]{{0,127}}/\d{{1,5}}[ ]"
            rf"|{_NO_HOST}(?=[a-z.-]{{0,127}}\d)[a-z0-9][a-z0-9.-]{{0,127}}:[ ]"
            rf"|[a-z][a-z0-9.-]{{0,127}}:[ ](?=\[rank\d|\[?{_DATE}[ T]))",
        ]
    )
)
#: A program's own word for its rank, which belongs to the text and stays there.
_OWN_RANK = re.compile(r"(?:\[[A-Z]\d{3,4} [^\]]{0,200}\] )?\[[Rr]ank (\d{1,7})\]")


@dataclass(frozen=True)
class LogLine:
    """One line of a log.

    Attributes:
        text: What the program wrote, without prefixes; its own indentation stays.
        rank: The rank that a prefix names, or the line itself (`[Rank 3]`); None if none does.
        source: The prefixes that name a rank or a place, joined: lines of one process have the
            same one. Empty where there is none.
        raw: The whole line, without terminal commands only.
    """

    text: str
    rank: int | None
    source: str
    raw: str


def parse_line(line: str) -> LogLine:
    """The parts of one line, which holds no line end."""
    text = raw = _TERMINAL.sub("", shortened(line))
    sources: list[str] = []
    rank = task = None
    for _ in range(_MAX_PREFIXES):
        match = _PREFIX.match(text)
        if match is None:
            break
        text = text[match.end() :]
        kind = match.lastgroup or ""
        if kind.startswith("rank"):
            rank = int(match[kind])
        elif kind.startswith("task"):
            task = int(match[kind])
        if kind != "time":
            sources.append(match[0].strip())
    if rank is None and (own := _OWN_RANK.match(text)):
        rank = int(own[1])
    return LogLine(text, task if rank is None else rank, " ".join(sources), raw)


def log_lines(texts: Iterable[str]) -> Iterator[LogLine]:
    """The lines of texts that each hold one or more whole lines; empty lines are left out.

    A carriage return ends a line as a line feed does, so that each state of a progress bar is a
    line of its own.
    """
    for text in texts:
        for line in _END.split(text):
            if line and not line.isspace():
                yield parse_line(line)


def bounded_lines(file: TextIO) -> Iterator[str]:
    """The lines of a file, of which no more than two `MAX_LENGTH` are ever held in memory."""
    while line := file.readline(MAX_LENGTH):
        if len(line) == MAX_LENGTH and not line.endswith("\n"):
            piece = last = line
            while piece and not piece.endswith("\n"):
                piece = file.readline(MAX_LENGTH)
                last = (last + piece)[-MAX_LENGTH:]
            if last != line:
                line = f"{line[:_HALF]}{_CUT}{last[-_HALF:]}"
        yield line


def shortened(line: str) -> str:
    """A line of at most `MAX_LENGTH` characters and a mark, without its middle if it is longer."""
    return line if len(line) <= MAX_LENGTH + len(_CUT) else f"{line[:_HALF]}{_CUT}{line[-_HALF:]}"
