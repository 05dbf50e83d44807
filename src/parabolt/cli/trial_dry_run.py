"""What a dry run shows: command, verdict, and what was read of report or logs."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import typer

from parabolt.cli.interrupts import interrupted_by_signals
from parabolt.cli.output import print_json
from parabolt.outcome import Status
from parabolt.space.configuration import Configuration
from parabolt.trials.dry_run import dry_run

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from parabolt.trials.dry_run import DryRun
    from parabolt.trials.launchers.launcher import Launch
    from parabolt.trials.spec.spec import Spec

#: Steps that are shown one by one.
_N_STEPS = 6


def run_dry(
    screen: Console, spec: Spec, folder: Path, configuration: str, *, needs_memory: bool, json: bool
) -> None:
    """Runs one configuration and shows what was read; exit status 1 unless it finished.

    Args:
        screen: Where to print.
        spec: The spec.
        folder: The session's folder.
        configuration: As text, such as `dp=2 tp=4 bucket=256`; empty to let parabolt choose.
        needs_memory: Whether memory must be reported, as for a sweep.
        json: Whether to print JSON.
    """
    chosen = Configuration.parse(configuration) if configuration else None

    def announce(configuration: Configuration, launch: Launch) -> None:
        if not json:
            screen.print(f"configuration: {configuration}", soft_wrap=True)
            screen.print(f"command: {shlex.join(launch.arguments)}", soft_wrap=True)

    try:
        with interrupted_by_signals():
            done = dry_run(
                spec, folder, configuration=chosen, needs_memory=needs_memory, announce=announce
            )
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    if json:
        print_json(_as_json(done))
    else:
        for line in _lines(spec, done):
            screen.print(line, soft_wrap=True)
    if done.attempt.verdict.status is not Status.OK:
        raise typer.Exit(1)


def _lines(spec: Spec, done: DryRun) -> list[str]:
    attempt, trial = done.attempt, spec.trial
    why = f": {attempt.verdict.reason}" if attempt.verdict.reason else ""
    lines = [f"ended: {attempt.verdict.status}{why}"]
    read = attempt.measurements
    if read is None:
        return lines
    steps = sorted(read.step_times_s)
    shown = ", ".join(f"{step}: {read.step_times_s[step]:.4g} s" for step in steps[:_N_STEPS])
    more = ", ..." if len(steps) > _N_STEPS else ""
    lines.append(
        f"read by {trial.log_format}: {len(steps)} steps ({shown}{more})"
        if steps
        else f"read by {trial.log_format}: no steps"
    )
    gib = ", ".join(f"rank {rank}: {g:.4g} GiB" for rank, g in sorted(read.peak_memory_gib.items()))
    lines.append(f"peak memory: {gib or 'not read'}")
    if attempt.statistics is not None:
        lines.append(
            f"throughput: {attempt.statistics.throughput:.5g} iterations/s over the "
            f"{trial.timed_steps} steps after {trial.warmup_steps} of warm-up"
        )
    lines.append(f"files: {done.launch.folder}")
    return lines


def _as_json(done: DryRun) -> dict[str, Any]:
    read = done.attempt.measurements
    return {
        "configuration": done.configuration.as_dict(),
        "command": list(done.launch.arguments),
        "variables": dict(done.launch.variables),
        **done.attempt.outcome.to_record(),
        "reason": done.attempt.verdict.reason,
        "step_times_s": {} if read is None else {str(k): v for k, v in read.step_times_s.items()},
        "peak_memory_gib_by_rank": (
            {} if read is None else {str(k): v for k, v in read.peak_memory_gib.items()}
        ),
        "folder": str(done.launch.folder),
    }
