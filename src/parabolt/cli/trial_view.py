"""The live view of `tune` and `sweep`, and what they print at the end."""

from __future__ import annotations

import shlex
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from parabolt.cli.output import bold
from parabolt.trials.spec.template import TRIAL_FIELDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from rich.console import Console, RenderableType

    from parabolt.trials.records import Trial, TrialHistory
    from parabolt.trials.session import SessionState
    from parabolt.trials.spec.spec import Spec

#: The `--retry-crashed` option of both commands.
RetryCrashed = Annotated[
    bool,
    typer.Option("--retry-crashed", help="Run trials again that ended as crashed or node."),
]

#: Trials and messages that are shown at once.
_N_TRIALS, _N_MESSAGES = 12, 4


@contextmanager
def watching(
    screen: Console, spec: Spec, n_trials: int | None, *, is_quiet: bool
) -> Iterator[Callable[[SessionState], None]]:
    """An observer that draws on a terminal, prints events into a pipe, or says nothing.

    SIGTERM ends the run as Ctrl-C does: what runs is ended first.
    """
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        if is_quiet:
            yield _ignore
        elif not screen.is_terminal:
            yield lambda state: _print_event(screen, state)
        else:
            messages: list[str] = []
            with Live(console=screen, refresh_per_second=4) as live:
                yield lambda state: _draw(live, spec, n_trials, messages, state)
    finally:
        signal.signal(signal.SIGTERM, before)


def print_result(screen: Console, spec: Spec, history: TrialHistory) -> None:
    """Prints what was found, its launch command, and what it rests on."""
    best, n_gpus = history.incumbent, spec.instance.cluster.n_gpus
    counts = ", ".join(f"{n} {status}" for status, n in sorted(_counts(history).items()))
    hours = history.wall_time_s * n_gpus / 3600.0
    if best is None:
        screen.print(f"no configuration finished: {counts or 'no trials'}")
        return
    screen.print("best:", bold(best.configuration))
    screen.print(f"      {_measured(best, spec)}")
    screen.print(f"      from trial {best.number}, whose files are in {best.folder}")
    command = shlex.join(_launch_arguments(spec, best))
    screen.print(f"launch command: {command}", soft_wrap=True)
    screen.print(
        f"evidence: {len(history.told)} trials ({counts}); {hours:.3f} GPU-hours spent, about "
        f"{history.saved_s * n_gpus / 3600.0:.3f} saved by early termination"
    )


def result_as_json(spec: Spec, history: TrialHistory) -> dict[str, Any]:
    """The same for scripts."""
    best, n_gpus = history.incumbent, spec.instance.cluster.n_gpus
    return {
        "instance": spec.instance.name,
        "best": None if best is None else _trial_as_json(best),
        "launch_command": None if best is None else _launch_arguments(spec, best),
        "gpu_hours_spent": history.wall_time_s * n_gpus / 3600.0,
        "gpu_hours_saved_estimate": history.saved_s * n_gpus / 3600.0,
        "trials": [_trial_as_json(trial) for trial in history.told],
    }


def _launch_arguments(spec: Spec, trial: Trial) -> list[str]:
    """The command of a configuration; what belongs to one trial alone keeps its field's name."""
    own = {name: f"{{{name}}}" for name in TRIAL_FIELDS}
    return list(spec.arguments(trial.configuration, own))


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


def _measured(trial: Trial, spec: Spec) -> str:
    outcome, statistics = trial.outcome, trial.statistics or {}
    n, spread = len(statistics["step_times_s"]), statistics["throughput_std"]
    spread_text = "" if spread is None else f" +- {spread:.4g} (std over {n} steps)"
    memory = (
        f"{outcome.peak_memory_gib:.4g} of {spec.memory_gib:g} GiB"
        if outcome.peak_memory_gib > 0.0
        else "memory not reported"
    )
    return f"{outcome.throughput:.5g}{spread_text} iterations/s, {memory}, measured"


def _counts(history: TrialHistory) -> dict[str, int]:
    counts: dict[str, int] = {}
    for trial in history.told:
        status = str(trial.outcome.status)
        counts[status] = counts.get(status, 0) + 1
    return counts


def _print_event(screen: Console, state: SessionState) -> None:
    if state.message:
        screen.print(state.message, soft_wrap=True)


def _draw(
    live: Live, spec: Spec, n_trials: int | None, messages: list[str], state: SessionState
) -> None:
    if state.message:
        messages.append(state.message)
        del messages[:-_N_MESSAGES]
    live.update(
        Group(
            _status_line(spec, n_trials, state),
            _running_line(spec, state),
            _trials_table(state.history),
            Text("\n".join(messages), style="dim"),
        )
    )


def _status_line(spec: Spec, n_trials: int | None, state: SessionState) -> Text:
    history, n_gpus = state.history, spec.instance.cluster.n_gpus
    spent = (history.wall_time_s + state.running_s) * n_gpus / 3600.0
    saved = history.saved_s * n_gpus / 3600.0
    of = "" if n_trials is None else f" of {n_trials}"
    return Text(
        f"{spec.instance.name}: {len(history.told)}{of} trials, {spent:.3f} GPU-hours spent, "
        f"about {saved:.3f} saved",
        style="bold",
    )


def _running_line(spec: Spec, state: SessionState) -> RenderableType:
    trial = state.trial
    if trial is None:
        return Text("choosing the next trial")
    gain = state.expected_gain
    gain_text = "" if gain is None else f", expected gain {gain:.3g} iterations/s"
    steps = state.step_times_s
    speed = "" if not steps else f", {len(steps) / sum(steps):.4g} iterations/s so far"
    return Text(
        f"running trial {trial.number}: {trial.configuration}; {len(steps)} of "
        f"{spec.trial.timed_steps} timed steps, {state.running_s:.0f} s{speed}{gain_text}"
    )


def _trials_table(history: TrialHistory) -> Table:
    best = history.incumbent
    table = Table("trial", "configuration", "status", "iterations/s", "GiB", "s")
    for trial in history.told[-_N_TRIALS:]:
        outcome = trial.outcome
        style = "bold green" if trial is best else ""
        speed, memory = outcome.throughput, outcome.peak_memory_gib
        table.add_row(
            str(trial.number),
            str(trial.configuration),
            str(outcome.status),
            f"{speed:.4g}" if speed > 0.0 else "",
            f"{memory:.3g}" if memory > 0.0 else "",
            f"{trial.wall_time_s:.0f}",
            style=style,
        )
    if best is not None and best not in history.told[-_N_TRIALS:]:
        table.add_row(
            str(best.number), str(best.configuration), "ok", f"{best.outcome.throughput:.4g}",
            "", "", style="bold green",
        )  # fmt: skip
    return table


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _ignore(_progress: SessionState) -> None:
    pass
