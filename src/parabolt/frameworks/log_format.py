"""Step times and memory from the logs of programs that don't speak the protocol.

A format is a list of regular expressions whose named groups say what was found:

- `step` with one of `seconds`, `milliseconds`, `samples_per_s` (of the whole job) or
  `tokens_per_gpu_s` (per GPU of the job);
- `memory_gb`, `memory_mib` or `memory_gib`, with `rank` where the line says it.

Facts on the built-in formats: Megatron-LM's training log prints milliseconds per iteration and a
memory report in MiB; torchtitan prints reserved memory in GiB and tokens/s per device over all
devices; DeepSpeed's throughput timer prints samples/s of the job and memory in GiB.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from parabolt.errors import SpecError, UnknownNameError
from parabolt.frameworks.measurements import ReportError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from parabolt.frameworks.measurements import Measurements
    from parabolt.instances.specs import Instance

_STEP_GROUPS = ("seconds", "milliseconds", "samples_per_s", "tokens_per_gpu_s")
_GB: dict[str, float] = {"memory_gb": 1.0, "memory_mib": 2**20 / 1e9, "memory_gib": 2**30 / 1e9}
_NUMBER = r"[0-9][0-9,]*\.?[0-9]*(?:[eE][+-]?[0-9]+)?"
#: Colour codes, which torchtitan prints also into files.
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class LogFormat:
    """Regular expressions that find steps and memory in a log, line by line.

    Attributes:
        patterns: The expressions, with the named groups of the module's text.

    Raises:
        SpecError: For an expression that doesn't compile or lacks the groups.
    """

    patterns: tuple[str, ...]

    def __post_init__(self) -> None:
        known = {"step", "rank", *_STEP_GROUPS, *_GB}
        for text in self.patterns:
            try:
                groups = set(re.compile(text).groupindex)
            except re.error as error:
                raise SpecError(f"pattern {text!r}: {error}") from error
            finds_step = "step" in groups and len(groups & set(_STEP_GROUPS)) == 1
            if groups - known or not (finds_step or groups & set(_GB)):
                raise SpecError(
                    f"pattern {text!r}: expected the named group step with one of "
                    f"{', '.join(_STEP_GROUPS)}, or one of {', '.join(_GB)}; "
                    f"got {', '.join(sorted(groups)) or 'none'}"
                )

    @property
    def has_memory(self) -> bool:
        """Whether the format finds memory."""
        return any(set(re.compile(text).groupindex) & set(_GB) for text in self.patterns)

    def read(self, lines: Iterable[str], rank: int, instance: Instance, into: Measurements) -> None:
        """Records all that the lines of one rank's log say.

        Args:
            lines: The log, line by line.
            rank: Whose log it is, where a line doesn't say.
            instance: Gives the samples and tokens of an iteration.
            into: Where it goes.

        Raises:
            ReportError: If a step stands there twice, or a number isn't positive.
        """
        compiled = [re.compile(text) for text in self.patterns]
        for coloured in lines:
            line = _COLOUR.sub("", coloured)
            for pattern in compiled:
                for match in pattern.finditer(line):
                    _record(match.groupdict(), rank, instance, into)


def _record(
    found: dict[str, str | None], rank: int, instance: Instance, into: Measurements
) -> None:
    values = {name: text.replace(",", "") for name, text in found.items() if text is not None}
    rank = int(values.get("rank", rank))
    try:
        if "step" in values:
            into.add_step(int(values["step"]), _seconds(values, instance), rank)
        for name, factor in _GB.items():
            if name in values:
                into.add_memory(rank, float(values[name]) * factor)
    except (ValueError, ZeroDivisionError):
        raise ReportError(f"expected numbers in the log, got {values}") from None


def _seconds(values: dict[str, str], instance: Instance) -> float:
    workload = instance.workload
    if "milliseconds" in values:
        return float(values["milliseconds"]) / 1e3
    if "samples_per_s" in values:
        return workload.batch_size / float(values["samples_per_s"])
    if "tokens_per_gpu_s" in values:
        tokens = workload.batch_size * workload.sequence_length
        return tokens / (float(values["tokens_per_gpu_s"]) * instance.cluster.n_gpus)
    return float(values["seconds"])


#: Built-in formats by name. The rank of a Megatron memory line is the global one.
LOG_FORMATS: dict[str, LogFormat] = {
    "megatron": LogFormat(
        (
            rf"\biteration\s+(?P<step>\d+)\s*/.*?elapsed time per iteration \(ms\):\s*"
            rf"(?P<milliseconds>{_NUMBER})",
            rf"\[Rank (?P<rank>\d+)\].*?memory \(MB\).*?max reserved:\s*(?P<memory_mib>{_NUMBER})",
        )
    ),
    "torchtitan": LogFormat(
        (
            rf"\bstep:\s*(?P<step>\d+)\s.*?memory:\s*(?P<memory_gib>{_NUMBER})\s*GiB.*?"
            rf"\btps:\s*(?P<tokens_per_gpu_s>{_NUMBER})",
        )
    ),
    "deepspeed": LogFormat(
        (
            rf"\bglobal_step=(?P<step>\d+).*?CurrSamplesPerSec=(?P<samples_per_s>{_NUMBER}).*?"
            rf"MaxMemAllocated=(?P<memory_gib>{_NUMBER})\s*GB",
        )
    ),
}


def log_format(name: str) -> LogFormat:
    """A built-in format.

    Raises:
        UnknownNameError: If there is none of that name.
    """
    if name not in LOG_FORMATS:
        raise UnknownNameError.of("log format", name, ["report", "patterns", *LOG_FORMATS])
    return LOG_FORMATS[name]
