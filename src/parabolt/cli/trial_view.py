"""What `tune` and `sweep` show while they run: a live view, or lines in a pipe."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from parabolt.cli.interrupts import interrupted_by_signals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console, RenderableType

    from parabolt.journal.history import Trial, TrialHistory
    from parabolt.trials.session import SessionState
    from parabolt.trials.spec.spec import Spec

#: Trials and messages that are shown at once.
_N_TRIALS, _N_MESSAGES = 12, 4


@contextmanager
def watching(
    screen: Console, spec: Spec, n_trials: int | None, *, is_quiet: bool
) -> Iterator[Callable[[SessionState], None]]:
    """An observer that draws on a terminal, prints lines into a pipe, or says nothing."""
    with interrupted_by_signals():
        if is_quiet:
            yield _ignore
        elif not screen.is_terminal:
            yield lambda state: _print_event(screen, spec, n_trials, state)
        else:
            messages: list[str] = []
            with Live(console=screen, refresh_per_second=4) as live:
                yield lambda state: _draw(live, spec, n_trials, messages, state)


def counts_by_status(history: TrialHistory) -> str:
    """How many trials ended how, such as `9 ok, 2 oom`; empty where none has ended."""
    counts = Counter(str(trial.outcome.status) for trial in history.told)
    return ", ".join(f"{n} {status}" for status, n in sorted(counts.items()))


def _print_event(screen: Console, spec: Spec, n_trials: int | None, state: SessionState) -> None:
    if state.message:
        screen.print(state.message, soft_wrap=True)
    if state.ended is not None:
        figures = f"{_figures(state.ended)}; {_status(spec, n_trials, state)}"
        screen.print(f"  {figures}", soft_wrap=True)


def _figures(trial: Trial) -> str:
    """What a trial that has ended measured and cost."""
    outcome, figures = trial.outcome, []
    if outcome.status.is_timed:
        figures.append(f"{outcome.throughput:.4g} iterations/s")
    if _is_figure(outcome.peak_memory_gib):
        figures.append(f"{outcome.peak_memory_gib:.3g} GiB")
    return ", ".join([*figures, f"{trial.wall_time_s:.0f} s"])


def _is_figure(value: float) -> bool:
    return 0.0 < value < float("inf")


def _draw(
    live: Live, spec: Spec, n_trials: int | None, messages: list[str], state: SessionState
) -> None:
    if state.message:
        messages.append(state.message)
        del messages[:-_N_MESSAGES]
    live.update(
        Group(
            Text(f"{spec.instance.name}: {_status(spec, n_trials, state)}", style="bold"),
            _running_line(spec, state),
            _trials_table(state.history),
            Text("\n".join(messages), style="dim"),
        )
    )


def _status(spec: Spec, n_trials: int | None, state: SessionState) -> str:
    """How much of the budget is used. Trials that gave no outcome use none of it, and are told."""
    history, n_gpus = state.history, spec.instance.cluster.n_gpus
    spent = (history.wall_time_s + state.running_s) * n_gpus / 3600.0
    saved = history.saved_s * n_gpus / 3600.0
    n_counted = sum(trial.is_counted for trial in history.told)
    others = Counter(str(t.outcome.status) for t in history.told if not t.is_counted)
    said = "".join(f" + {n} {status}" for status, n in sorted(others.items()))
    of = "" if n_trials is None else f" of {n_trials}"
    return f"{n_counted}{of} trials{said}, {spent:.3f} GPU-hours spent, about {saved:.3f} saved"


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
    shown = history.told[-_N_TRIALS:]
    for trial in [*shown, *([best] if best is not None and best not in shown else [])]:
        outcome = trial.outcome
        speed, memory = outcome.throughput, outcome.peak_memory_gib
        table.add_row(
            str(trial.number),
            str(trial.configuration),
            str(outcome.status),
            f"{speed:.4g}" if _is_figure(speed) else "",
            f"{memory:.3g}" if _is_figure(memory) else "",
            f"{trial.wall_time_s:.0f}",
            style="bold green" if trial is best else "",
        )
    return table


def _ignore(_state: SessionState) -> None:
    pass
