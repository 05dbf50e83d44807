"""The contract of launchers: how a command becomes processes, and how they are ended as a whole."""

from __future__ import annotations

import os
import shlex
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

#: Environment variables that every trial gets, beside `PARABOLT_REPORT`.
TRIAL_VARIABLE, LOG_VARIABLE = "PARABOLT_TRIAL", "PARABOLT_LOG_DIR"


@dataclass(frozen=True)
class Launch:
    """A command that is to be run.

    Attributes:
        arguments: Program and arguments; no shell sees them.
        variables: Variables that are added to the environment.
        folder: Folder of the attempt; absolute. It marks the processes that belong to it.
        log_folder: Where logs go.
        working_folder: Where the command runs.
        time_limit_s: Longest time that it may run, in seconds.
    """

    arguments: tuple[str, ...]
    variables: Mapping[str, str]
    folder: Path
    log_folder: Path
    working_folder: Path
    time_limit_s: float

    @property
    def environment(self) -> dict[str, str]:
        """The whole environment of the command."""
        return {**os.environ, **self.variables}


@dataclass(frozen=True)
class Exit:
    """How a command ended, as far as the launcher knows; see `Ending`."""

    exit_code: int | None = None
    scheduler_state: str | None = None
    scheduler_reason: str | None = None
    n_host_oom_kills: int = 0


class StartError(Exception):
    """A command that could not be started; the trial has failed, and the search goes on."""


class Job(ABC):
    """A command that was started."""

    @abstractmethod
    def wait(self, seconds: float) -> Exit | None:
        """How it ended, waiting for at most `seconds`; None while it is running or queued."""

    @abstractmethod
    def kill(self) -> None:
        """Ends it with all its processes, and returns when none is left."""

    @property
    @abstractmethod
    def running_time_s(self) -> float:
        """Seconds since it began to run; 0 while it is queued."""


class Launcher(ABC):
    """Starts commands."""

    @abstractmethod
    def start(self, launch: Launch) -> Job:
        """Starts a command.

        Raises:
            StartError: If this command can't be started.
            LaunchError: If no command can be started.
        """

    @abstractmethod
    def shell_line(self, launch: Launch) -> str:
        """A line for a shell that runs a command as trials are, but without a time limit.

        Files that the line needs are written into the launch's folder.
        """

    @abstractmethod
    def end_leftovers(self, folder: Path) -> bool:
        """Ends what an attempt left running when parabolt itself was killed.

        Returns:
            Whether there was anything to end.
        """


def shell_words(variables: Mapping[str, str], arguments: Sequence[str]) -> str:
    """Variables and arguments as a shell takes them."""
    given = [f"{name}={shlex.quote(value)}" for name, value in variables.items()]
    return " ".join([*given, shlex.join(arguments)])
