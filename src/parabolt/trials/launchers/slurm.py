"""The Slurm launcher: batch jobs, their states, and their end.

The batch script is a constant. The command reaches it as arguments of its own, so neither sbatch
nor a shell ever splits or expands them. Variables for an N-node torchrun (`PET_*`, which torchrun
reads as its options) are set from what Slurm knows; a command without torchrun ignores them.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

from parabolt.errors import LaunchError
from parabolt.trials.launchers.launcher import (
    Exit,
    Job,
    Launch,
    Launcher,
    StartError,
    shell_words,
)

if TYPE_CHECKING:
    from pathlib import Path

    from parabolt.instances.specs import Cluster

#: One task per host; a task that fails ends the others. A requeued job begins its report anew.
#: torchrun meets at the address by which Slurm itself reaches the first host.
_SCRIPT = """#!/bin/sh
: > "$PARABOLT_REPORT"
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
address=$(scontrol show node --oneliner "$first" | sed -n 's/.* NodeAddr=\\([^ ]*\\).*/\\1/p')
MASTER_ADDR=${address:-$first}
MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))
PET_NNODES=$SLURM_JOB_NUM_NODES
PET_RDZV_BACKEND=c10d
PET_RDZV_ID=$SLURM_JOB_ID
PET_RDZV_ENDPOINT=$MASTER_ADDR:$MASTER_PORT
export MASTER_ADDR MASTER_PORT PET_NNODES PET_RDZV_BACKEND PET_RDZV_ID PET_RDZV_ENDPOINT
exec srun --kill-on-bad-exit=1 --open-mode=truncate \\
    --output="$PARABOLT_SRUN_LOGS/task-%t.log" --error="$PARABOLT_SRUN_LOGS/task-%t.log" "$@"
"""

#: States in which a job has not ended; requeued and suspended ones will run again.
_ALIVE = {
    "PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUED", "REQUEUE_HOLD",
    "REQUEUE_FED", "RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED", "SPECIAL_EXIT",
}  # fmt: skip
_FIELD = re.compile(r"(\w+)=(\S*)")
#: Seconds for one call of a Slurm command.
_CALL_S = 60.0
#: Shortest and longest time between two questions about a job, and their share of its age.
_MIN_POLL_S, _MAX_POLL_S, _POLL_SHARE = 1.0, 15.0, 1 / 30


class SlurmLauncher(Launcher):
    """Runs a command as a batch job.

    Args:
        cluster: Gives the number of hosts.
        options: Further options of sbatch, such as `--partition=gpu` and `--gpus-per-node=8`.
    """

    def __init__(self, cluster: Cluster, *, options: tuple[str, ...] = ()) -> None:
        self.cluster = cluster
        self.options = options

    def start(self, launch: Launch) -> Job:
        """See `Launcher.start`."""
        minutes = int(launch.time_limit_s // 60) + 2  # parabolt's own limit comes first
        done = _call(
            ["sbatch", "--parsable", f"--time={minutes}", *self._arguments(launch)],
            environment={**launch.environment, **_log_variable(launch)},
        )
        if done.returncode:
            said = " ".join((done.stderr or done.stdout).split())
            raise StartError(f"the scheduler rejected the job: {said}")
        job = done.stdout.strip().split(";")[0]
        (launch.folder / "slurm_job").write_text(f"{job}\n", encoding="utf-8")
        return _SlurmJob(job)

    def shell_line(self, launch: Launch) -> str:
        """See `Launcher.shell_line`."""
        variables = {**launch.variables, **_log_variable(launch)}
        return shell_words(variables, ["sbatch", *self._arguments(launch)])

    def _arguments(self, launch: Launch) -> list[str]:
        """Arguments of sbatch; the batch script is written into the launch's folder."""
        script = launch.folder / "job.sh"
        script.write_text(_SCRIPT, encoding="utf-8")
        return [
            "--export=ALL", "--open-mode=truncate", f"--job-name={_name(launch.folder)}",
            f"--nodes={self.cluster.n_hosts}", "--ntasks-per-node=1",
            f"--output={_plain(launch.log_folder)}/output.log",
            f"--chdir={launch.working_folder}", *self.options, str(script), *launch.arguments,
        ]  # fmt: skip

    def end_leftovers(self, folder: Path) -> bool:
        """See `Launcher.end_leftovers`."""
        # Asked by name: parabolt may have been killed before it knew the number.
        done = _call(["squeue", "--noheader", "--format=%i", f"--name={_name(folder)}"])
        if done.returncode:
            raise LaunchError(f"squeue failed: {' '.join(done.stderr.split())}")
        for job in done.stdout.split():
            _SlurmJob(job).kill()
        return bool(done.stdout.split())


class _SlurmJob(Job):
    def __init__(self, job: str) -> None:
        self._job = job
        self._exit: Exit | None = None
        self._began: float | None = None
        self._n_restarts = "0"
        self._start = time.monotonic()
        self._next_look = self._start

    def wait(self, seconds: float) -> Exit | None:
        end = time.monotonic() + seconds
        while self._exit is None:
            now = time.monotonic()
            if now >= self._next_look:
                self._look()
                pause = min(max(_MIN_POLL_S, (now - self._start) * _POLL_SHARE), _MAX_POLL_S)
                self._next_look = time.monotonic() + pause
            elif now >= end:
                break
            else:
                time.sleep(min(self._next_look, end) - now)
        return self._exit

    def kill(self) -> None:
        if self._exit is None:
            _call(["scancel", self._job])
            self._start, self._next_look = time.monotonic(), 0.0
        while self.wait(_MIN_POLL_S) is None:
            pass

    @property
    def running_time_s(self) -> float:
        return 0.0 if self._began is None else time.monotonic() - self._began

    def _look(self) -> None:
        facts = _facts(self._job)
        state = facts.get("JobState", "")
        if facts.get("Restarts", "0") != self._n_restarts:
            self._n_restarts = facts["Restarts"]
            self._began = None  # requeued: its time starts anew
        if state == "RUNNING" and self._began is None:
            self._began = time.monotonic()
        if state in _ALIVE:
            return
        code, _, signal = facts.get("ExitCode", "").partition(":")
        reason = facts.get("Reason", "None")
        self._exit = Exit(
            exit_code=-int(signal) if signal.isdigit() and int(signal) else _whole(code),
            scheduler_state=state or None,
            scheduler_reason=None if reason == "None" else reason,
        )


def _facts(job: str) -> dict[str, str]:
    """What the controller, or where it has forgotten the job the accounting, says of a job."""
    done = _call(["scontrol", "show", "job", "--oneliner", job])
    if done.returncode == 0:
        return dict(_FIELD.findall(done.stdout))
    if "Invalid job id" not in done.stderr:
        return {"JobState": "PENDING"}  # the controller is busy or restarting: ask again
    fields = ("JobState", "ExitCode")
    done = _call(["sacct", "-X", "-n", "-P", "-j", job, "-o", "State,ExitCode"])
    values = done.stdout.strip().split("|")
    if done.returncode or len(values) != len(fields):
        return {"Reason": "the scheduler has forgotten the job"}
    return {"JobState": values[0].split()[0], "ExitCode": values[1]}


def _call(
    arguments: list[str], environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    if shutil.which(arguments[0]) is None:
        raise LaunchError(f"expected {arguments[0]} of Slurm on the PATH, got none")
    try:
        return subprocess.run(  # noqa: S603 - Slurm's own commands, with a list of arguments
            arguments, capture_output=True, text=True, check=False, timeout=_CALL_S, env=environment
        )
    except subprocess.TimeoutExpired:
        raise LaunchError(f"{arguments[0]} did not answer within {_CALL_S:g} s") from None


def _log_variable(launch: Launch) -> dict[str, str]:
    """Where srun's logs go, as the batch script reads it."""
    return {"PARABOLT_SRUN_LOGS": _plain(launch.log_folder)}


def _name(folder: Path) -> str:
    """A job name that belongs to one attempt."""
    return f"parabolt-{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}"


def _plain(path: Path) -> str:
    """A path as Slurm takes it literally: a percent sign would be a pattern."""
    return str(path).replace("%", "%%")


def _whole(text: str) -> int | None:
    return int(text) if text.isdigit() else None
