"""The spec of real trials: what to run, where, how long, and with which optimizer."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parabolt.documents import shown
from parabolt.errors import SpecError
from parabolt.frameworks.distinct import check_knobs
from parabolt.frameworks.patterns import patterns_format
from parabolt.frameworks.registry import launching_framework, log_format
from parabolt.trials.spec.template import FLAGS, TRIAL_FIELDS, field_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from parabolt.frameworks.log_format import LogFormat
    from parabolt.instances.specs import Instance
    from parabolt.space.configuration import Configuration
    from parabolt.trials.spec.template import Template
    from parabolt.trials.stopping import StoppingRule

LAUNCHERS = ("local", "slurm")


#: Largest of any number: steps, seconds and hours beyond it are slips.
_LARGEST = 10**9


def _check_whole(name: str, value: Any, least: int) -> None:
    if type(value) is not int or value < least:
        raise SpecError(f"{name}: expected a whole number of at least {least}, got {shown(value)}")
    if value > _LARGEST:
        raise SpecError(f"{name}: expected at most {_LARGEST:,}, got {shown(value)}")


def _check_positive(name: str, value: Any) -> None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 < value < math.inf:
        raise SpecError(f"{name}: expected a positive number, got {shown(value)}")
    if value > _LARGEST:
        raise SpecError(f"{name}: expected at most {_LARGEST:,}, got {shown(value)}")


@dataclass(frozen=True)
class TrialSpec:
    """How one trial is run and measured.

    Attributes:
        warmup_steps: Steps before the timed ones.
        timed_steps: Steps that count.
        time_limit_s: Longest running time of a trial in seconds; time in a queue doesn't count.
        retries: How often a crashed trial is run again before it is set aside.
        memory_gib: Memory capacity of a GPU in GiB; None takes the instance's.
        log_format: `report` for the protocol, the name of a built-in log format, or `patterns`.
        patterns: Regular expressions for `patterns`; see `parabolt.frameworks.patterns`.
    """

    warmup_steps: int = 2
    timed_steps: int = 10
    time_limit_s: float = 1800.0
    retries: int = 1
    memory_gib: float | None = None
    log_format: str = "report"
    patterns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_whole("warmup_steps", self.warmup_steps, 0)
        _check_whole("timed_steps", self.timed_steps, 1)
        _check_whole("retries", self.retries, 0)
        _check_positive("time_limit_s", self.time_limit_s)
        if self.memory_gib is not None:
            _check_positive("memory_gib", self.memory_gib)
        if (self.log_format == "patterns") != bool(self.patterns):
            raise SpecError('patterns: expected with log_format = "patterns" and only with it')
        self.parser()

    def parser(self) -> LogFormat | None:
        """The log format; None where the program reports by the protocol."""
        if self.log_format == "report":
            return None
        if self.patterns:
            return patterns_format(self.patterns)
        return log_format(self.log_format)

    @property
    def steps(self) -> int:
        """Warm-up and timed steps."""
        return self.warmup_steps + self.timed_steps


@dataclass(frozen=True)
class LauncherSpec:
    """Where trials run.

    Attributes:
        kind: `local` or `slurm`.
        gpus: Local only: numbers of the GPUs to use, as `CUDA_VISIBLE_DEVICES`.
        working_directory: Where the command runs; relative to the spec.
        options: Slurm only: further options of sbatch, such as `--partition=gpu`.
    """

    kind: str = "local"
    gpus: tuple[int, ...] | None = None
    working_directory: str = "."
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in LAUNCHERS:
            raise SpecError(f"kind: expected one of {', '.join(LAUNCHERS)}, got {self.kind!r}")
        if self.gpus is not None and (self.kind != "local" or not self.gpus):
            raise SpecError("gpus: expected numbers, and only with the local launcher")
        for gpu in self.gpus or ():
            _check_whole("gpus", gpu, 0)
        if len(set(self.gpus or ())) < len(self.gpus or ()):
            raise SpecError(f"gpus: expected distinct numbers, got {list(self.gpus or ())}")
        if self.options and self.kind != "slurm":
            raise SpecError("options: expected with the slurm launcher only")


@dataclass(frozen=True)
class Budget:
    """When the search ends; at least one limit.

    Attributes:
        trials: Configurations that gave an outcome; those set aside after crashes don't count.
        wall_clock_h: Hours of all trials together.
        gpu_hours: The same times the number of GPUs.
    """

    trials: int | None = None
    wall_clock_h: float | None = None
    gpu_hours: float | None = None

    def __post_init__(self) -> None:
        if self.trials is None and self.wall_clock_h is None and self.gpu_hours is None:
            raise SpecError("expected trials, wall_clock_h or gpu_hours, got none")
        if self.trials is not None:
            _check_whole("trials", self.trials, 1)
        for name in ("wall_clock_h", "gpu_hours"):
            if (limit := getattr(self, name)) is not None:
                _check_positive(name, limit)


@dataclass(frozen=True)
class OptimizerSpec:
    """The optimizer.

    Attributes:
        name: Name in the registry.
        seed: Its seed.
        options: Its options.
    """

    name: str = "parabolt"
    seed: int = 0
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if type(self.seed) is not int or not 0 <= self.seed < 2**32:
            raise SpecError(
                f"[optimizer] seed: expected a whole number from 0 to {2**32 - 1}, got "
                f"{shown(self.seed)}"
            )


@dataclass(frozen=True)
class Spec:
    """Everything that `tune` and `sweep` need to know; see `spec_file.load_spec`.

    Attributes:
        instance: The instance, whose lattice is searched.
        command: The command.
        framework: Whose launch settings `{flags}` in the command stands for; None for none.
        environment: Variables that are added to the environment, as templates.
        folder: Folder that relative paths start from.
        trial: How a trial is run.
        launcher: Where.
        budget: When the search ends; None for a sweep.
        optimizer: The optimizer.
        stopping: Rule of early termination; None for none.
    """

    instance: Instance
    command: Template
    framework: str | None = None
    environment: tuple[tuple[str, Template], ...] = ()
    folder: Path = Path()
    trial: TrialSpec = TrialSpec()
    launcher: LauncherSpec = LauncherSpec()
    budget: Budget | None = None
    optimizer: OptimizerSpec = OptimizerSpec()
    stopping: StoppingRule | None = None

    def __post_init__(self) -> None:
        if self.framework is not None:
            check_knobs(launching_framework(self.framework), self.instance)
        if (self.framework is None) == (FLAGS in self.command.arguments):
            raise SpecError("framework: expected with the argument {flags} and only with it")
        if any(FLAGS in template.arguments for _, template in self.environment):
            raise SpecError("environment: expected no {flags}, which are arguments")
        used = self.command.fields.union(*(template.fields for _, template in self.environment))
        searched = {knob.name for knob in self.instance.encoding.knobs}
        is_covered = self.framework is not None or "configuration" in used
        if not is_covered and (unused := sorted(searched - used)):
            raise SpecError(
                f"command: {', '.join(unused)} of {self.instance.name} occurs nowhere, so that "
                f"different configurations would be the same run; try {{{unused[0]}}} in the "
                "command or in [environment], or {configuration}"
            )

    def arguments(self, configuration: Configuration, own: Mapping[str, object]) -> tuple[str, ...]:
        """The command of a configuration.

        Args:
            configuration: What is to be run.
            own: Values of the trial's own fields, see `template.TRIAL_FIELDS`.

        Raises:
            SpecError: If the framework can't express the configuration.
        """
        return self.command.fill(self.values(configuration, own), self._flags(configuration))

    def launched(self, configuration: Configuration) -> tuple[str, ...]:
        """Command and environment of a configuration, whatever trial it is run in.

        Raises:
            SpecError: If the framework can't express the configuration.
        """
        own = {name: f"{{{name}}}" for name in TRIAL_FIELDS}
        values = self.values(configuration, own)
        environment = (template.fill(values)[0] for _, template in self.environment)
        return (*self.arguments(configuration, own), *environment)

    def values(self, configuration: Configuration, own: Mapping[str, object]) -> dict[str, object]:
        """Values of all fields; see `arguments`."""
        return {**field_values(configuration, self.instance), "memory_gib": self.memory_gib, **own}

    def _flags(self, configuration: Configuration) -> list[str]:
        if self.framework is None:
            return []
        launch = launching_framework(self.framework).launch(self.instance, configuration)
        if launch.reason:
            raise SpecError(f"{launch.framework} can't express {configuration}: {launch.reason}")
        return [word for flag in launch.flags for word in shlex.split(flag)]

    @property
    def memory_gib(self) -> float:
        """Memory capacity of a GPU in GiB."""
        return self.trial.memory_gib or self.instance.cluster.memory_gib

    @property
    def parts(self) -> dict[str, Any]:
        """What its trials' measurements depend on, by section; see `identity`."""
        return {
            "instance": self.instance,
            "command": [self.command.arguments, self.framework],
            "environment": [(name, template.arguments) for name, template in self.environment],
            "trial": self.trial,
            "optimizer": self.optimizer,
            "early_termination": self.stopping,
        }
