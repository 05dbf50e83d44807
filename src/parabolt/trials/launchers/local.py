"""The local launcher: processes of this machine."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from parabolt.trials.launchers.launcher import (
    TRIAL_VARIABLE,
    Exit,
    Job,
    Launch,
    Launcher,
    StartError,
    shell_words,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Seconds between asking processes to end and killing them.
_GRACE_S = 3.0
_PROC = Path("/proc")


class LocalLauncher(Launcher):
    """Runs a command on this machine, in a session of its own.

    Args:
        gpus: Numbers of the GPUs that trials may use, as `CUDA_VISIBLE_DEVICES`; None leaves the
            environment as it is.
    """

    def __init__(self, gpus: Sequence[int] | None = None) -> None:
        self.gpus = gpus

    def start(self, launch: Launch) -> Job:
        """See `Launcher.start`."""
        environment = {**launch.environment, **self._gpu_variables}
        n_kills = _host_oom_kills()
        try:
            with (launch.log_folder / "output.log").open("wb") as log:
                process = subprocess.Popen(  # noqa: S603 - arguments of the user's own command
                    launch.arguments,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    cwd=launch.working_folder,
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:
            raise StartError(f"cannot start {launch.arguments[0]!r}: {error}") from error
        return _LocalJob(process, str(launch.folder), n_kills)

    def shell_line(self, launch: Launch) -> str:
        """See `Launcher.shell_line`."""
        words = shell_words({**launch.variables, **self._gpu_variables}, launch.arguments)
        return f"cd {shlex.quote(str(launch.working_folder))} && {words}"

    @property
    def _gpu_variables(self) -> dict[str, str]:
        if self.gpus is None:
            return {}
        return {"CUDA_VISIBLE_DEVICES": ",".join(map(str, self.gpus))}

    def end_leftovers(self, folder: Path) -> bool:
        """See `Launcher.end_leftovers`."""
        processes = _marked_processes(str(folder))
        _end(processes, str(folder))
        return bool(processes)


class _LocalJob(Job):
    def __init__(self, process: subprocess.Popen[bytes], mark: str, n_kills: int) -> None:
        self._process = process
        self._mark = mark
        self._n_kills = n_kills
        self._start = time.monotonic()
        self._exit: Exit | None = None

    def wait(self, seconds: float) -> Exit | None:
        if self._exit is None:
            try:
                code = self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                return None
            _end(_marked_processes(self._mark), self._mark)  # ranks that outlived their launcher
            self._exit = Exit(exit_code=code, n_host_oom_kills=_host_oom_kills() - self._n_kills)
        return self._exit

    def kill(self) -> None:
        if self._exit is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        _end(_marked_processes(self._mark), self._mark)

    @property
    def running_time_s(self) -> float:
        return time.monotonic() - self._start


def _end(processes: list[int], mark: str) -> None:
    """Kills processes until none that bears the mark is left."""
    while processes:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.01)
        processes = _marked_processes(mark)


def _marked_processes(mark: str) -> list[int]:
    """Processes that were started for an attempt: its folder stands in their environment.

    torchrun puts every rank into a session of its own, so a process group doesn't hold them all;
    the environment is inherited whatever happens, and outlives parabolt.
    """
    entry = f"{TRIAL_VARIABLE}={mark}".encode()
    processes = []
    for path in _PROC.glob("[0-9]*"):
        try:
            environment = (path / "environ").read_bytes()
            is_zombie = b") Z" in (path / "stat").read_bytes()
        except OSError:
            continue  # ended meanwhile, or somebody else's
        if entry in environment.split(b"\0") and not is_zombie and int(path.name) != os.getpid():
            processes.append(int(path.name))
    return processes


def _host_oom_kills() -> int:
    """How many processes this machine's kernel has killed for lack of memory since it booted."""
    try:
        lines = (_PROC / "vmstat").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)
