"""Command templates: lists of arguments with named fields, filled in without any shell."""

from __future__ import annotations

import shlex
import string
from dataclasses import dataclass
from typing import TYPE_CHECKING

from parabolt.errors import SpecError
from parabolt.space.knobs import KNOBS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from parabolt.instances.specs import Instance
    from parabolt.space.configuration import Configuration

#: Fields that say where a trial's files are, and what they hold.
TRIAL_FIELDS: dict[str, str] = {
    "trial_dir": "folder of the trial",
    "log_dir": "folder whose files are all read as logs",
    "report": "file that the steps are reported to; also in PARABOLT_REPORT",
    "steps": "warm-up and timed steps together",
    "warmup_steps": "steps before the timed ones",
    "timed_steps": "steps that count",
}

#: The argument that stands for all launch settings of a framework.
FLAGS = "{flags}"

#: Fields that describe the configuration as a whole and the instance.
INSTANCE_FIELDS: dict[str, str] = {
    "configuration": 'the configuration as text, such as "dp=2 tp=2 ..."',
    "n_layers": "transformer layers",
    "n_heads": "attention heads",
    "hidden_size": "hidden size",
    "ffn_size": "inner size of the feed-forward block",
    "n_gpus": "GPUs in all",
    "n_hosts": "hosts",
    "gpus_per_host": "GPUs of one host",
    "memory_gib": "memory of one GPU in GiB",
    "sequence_length": "tokens per sequence",
    "batch_size": "batch size",
}


@dataclass(frozen=True)
class Template:
    """Arguments with fields in braces, such as `--tp {tp}`; `{{` and `}}` stand for braces.

    A value takes the place of its field inside one argument: whatever it holds, it never becomes
    two arguments, and no shell ever sees it. Only the argument `{flags}` stands for many: the
    launch settings of a framework.

    Attributes:
        arguments: The arguments, at least one.

    Raises:
        SpecError: For an unknown field or an unbalanced brace.
    """

    arguments: tuple[str, ...]

    def __post_init__(self) -> None:
        known = {*KNOBS, *TRIAL_FIELDS, *INSTANCE_FIELDS}
        for argument in self.arguments:
            for field in _fields(argument):
                if field == "memory_gb":
                    raise SpecError(
                        f"{argument!r}: expected memory_gib, in GiB (2^30 bytes), got memory_gb of "
                        "version 0.1, in 1e9 bytes; try {memory_gib}, and let the program take GiB "
                        "(1 GiB = 1.0737 GB)"
                    )
                if field not in known and argument != FLAGS:
                    raise SpecError(
                        f"{argument!r}: expected a field among {', '.join(sorted(known))}, "
                        f"got {{{field}}}; try {{{{ and }}}} for braces of the program's own"
                    )

    @classmethod
    def parse(cls, command: str | list[str]) -> Template:
        """The template of a list of arguments, or of one line that is split as a shell would.

        The line is split before any value is filled in.
        """
        if isinstance(command, str):
            try:
                command = shlex.split(command)
            except ValueError as error:
                raise SpecError(f"command: cannot split {command!r}: {error}") from error
        if not command or not command[0].strip():
            raise SpecError(
                f"command: expected a program, got {command[0]!r}"
                if command
                else "command: expected at least one argument, got none"
            )
        return cls(tuple(command))

    @property
    def fields(self) -> frozenset[str]:
        """Names of the fields that occur."""
        return frozenset(field for a in self.arguments for field in _fields(a))

    def fill(self, values: Mapping[str, object], flags: Sequence[str] = ()) -> tuple[str, ...]:
        """The arguments with every field replaced by its value, and `{flags}` by `flags`."""
        filled: list[str] = []
        for argument in self.arguments:
            filled += flags if argument == FLAGS else [argument.format_map(values)]
        return tuple(filled)


def field_values(configuration: Configuration, instance: Instance) -> dict[str, object]:
    """Values of the fields that a configuration and its instance give."""
    model, cluster, workload = instance.model, instance.cluster, instance.workload
    values = {k: knob.plain(getattr(configuration, k)) for k, knob in KNOBS.items()}
    stated = configuration.as_dict()
    return {
        **values,
        "configuration": " ".join(f"{name}={value}" for name, value in stated.items()),
        "n_layers": model.n_layers,
        "n_heads": model.n_heads,
        "hidden_size": model.hidden_size,
        "ffn_size": model.ffn_size,
        "n_gpus": cluster.n_gpus,
        "n_hosts": cluster.n_hosts,
        "gpus_per_host": cluster.gpus_per_host,
        "memory_gib": cluster.memory_gib,
        "sequence_length": workload.sequence_length,
        "batch_size": workload.batch_size,
    }


def _fields(argument: str) -> list[str]:
    try:
        parts = list(string.Formatter().parse(argument))
    except ValueError as error:
        raise SpecError(f"{argument!r}: {error}; try {{{{ and }}}} for braces") from error
    for _, field, form, conversion in parts:
        if form or conversion:
            raise SpecError(f"{argument!r}: expected a plain field such as {{tp}}, got {{{field}")
    return [field for _, field, _, _ in parts if field is not None]
