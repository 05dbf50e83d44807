"""The contract of launchers: how a command becomes processes, and how they are ended as a whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

#: Environment variables that every trial gets, beside `PARABOLT_REPORT`.
TRIAL_VARIABLE, LOG_VARIABLE = "PARABOLT_TRIAL", "PARABOLT_LOG_DIR"


@dataclass(frozen=True)
class Launch:
    """A command that is to be run.

    Attributes:
        arguments: Program and arguments; no shell sees them.
        environment: The whole environment.
        folder: Folder of the attempt; absolute. It marks the processes that belong to it.
        log_folder: Where logs go.
        working_folder: Where the command runs.
        time_limit_s: Longest time that it may run, in seconds.
    """

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path
    log_folder: Path
    working_folder: Path
    time_limit_s: float


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
    def end_leftovers(self, folder: Path) -> bool:
        """Ends what an attempt left running when parabolt itself was killed.

        Returns:
            Whether there was anything to end.
        """
