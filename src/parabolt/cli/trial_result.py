"""What `tune` and `sweep` say at the end: the best, its launch command, and what it rests on."""

from __future__ import annotations

from statistics import stdev
from typing import TYPE_CHECKING, Any

from parabolt.cli.output import bold
from parabolt.cli.trial_view import counts_by_status
from parabolt.trials.attempt import launch_of
from parabolt.trials.session import make_launcher

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from parabolt.journal.history import Leader, Trial, TrialHistory
    from parabolt.trials.launchers.launcher import Launch
    from parabolt.trials.spec.spec import Spec

#: Folder below the session's, for the files of a run that is started by the printed command.
_LAUNCH = "launch"


def print_result(screen: Console, spec: Spec, history: TrialHistory, folder: Path) -> None:
    """Prints what was found in a session's folder."""
    best, n_gpus = history.best, spec.instance.cluster.n_gpus
    counts = counts_by_status(history)
    hours = history.wall_time_s * n_gpus / 3600.0
    if best is None:
        screen.print(f"no configuration finished: {counts or 'no trials'}")
    else:
        screen.print("best:", bold(best.configuration))
        screen.print(f"      {_measured(best, spec)}")
        last = best.trials[-1]
        numbers = ", ".join(str(trial.number) for trial in best.trials)
        plural = "s" * (len(best.trials) > 1)
        screen.print(f"      from trial{plural} {numbers}, whose files are in {last.folder}")
        line = make_launcher(spec).shell_line(_launch(spec, best, folder))
        screen.print(f"launch command: {line}", soft_wrap=True)
        screen.print(
            f"evidence: {len(history.told)} trials ({counts}); {hours:.3f} GPU-hours spent, about "
            f"{history.saved_s * n_gpus / 3600.0:.3f} saved by early termination"
        )
    n_aside = sum(trial.was_set_aside for trial in history.told)
    if n_aside:
        screen.print(f"{n_aside} set aside as crashed or node; --retry-crashed runs them again")


def result_as_json(spec: Spec, history: TrialHistory, folder: Path) -> dict[str, Any]:
    """The same for scripts."""
    best, n_gpus = history.best, spec.instance.cluster.n_gpus
    launch = None if best is None else _launch(spec, best, folder)
    return {
        "instance": spec.instance.name,
        "best": None if best is None else _best_as_json(best),
        "launch_command": None if launch is None else list(launch.arguments),
        "launch_variables": None if launch is None else dict(launch.variables),
        "launch_line": None if launch is None else make_launcher(spec).shell_line(launch),
        "gpu_hours_spent": history.wall_time_s * n_gpus / 3600.0,
        "gpu_hours_saved_estimate": history.saved_s * n_gpus / 3600.0,
        "trials": [_trial_as_json(trial) for trial in history.told],
    }


def _launch(spec: Spec, best: Leader, folder: Path) -> Launch:
    launch = launch_of(spec, best.configuration, folder.resolve() / _LAUNCH)
    launch.log_folder.mkdir(parents=True, exist_ok=True)
    return launch


def _trial_as_json(trial: Trial) -> dict[str, Any]:
    return {
        "trial": trial.number,
        "configuration": trial.configuration.as_dict(),
        **trial.outcome.to_record(),
        "reason": trial.reason,
        "n_attempts": trial.n_launched,
        "folder": trial.folder,
        "statistics": trial.statistics,
    }


def _best_as_json(best: Leader) -> dict[str, Any]:
    """The first trial of the best, with the figures of all its trials."""
    return {
        **_trial_as_json(best.trials[0]),
        "throughput": best.throughput,
        "peak_memory_gib": best.peak_memory_gib,
        "trials": [trial.number for trial in best.trials],
    }


def _measured(best: Leader, spec: Spec) -> str:
    rates = [1.0 / t for t in best.step_times_s]
    spread = f" +- {stdev(rates):.4g} (std over {len(rates)} steps)" if len(rates) > 1 else ""
    memory = (
        f"{best.peak_memory_gib:.4g} of {spec.memory_gib:g} GiB"
        if best.peak_memory_gib > 0.0
        else "memory not reported"
    )
    return f"{best.throughput:.5g}{spread} iterations/s, {memory}, measured"
