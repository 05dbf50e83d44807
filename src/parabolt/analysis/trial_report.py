"""The report of a search or a sweep of real trials: one HTML page, from its journal alone."""

from __future__ import annotations

import html
import json
import shlex
from string import Template
from typing import TYPE_CHECKING

from parabolt.files import write_whole
from parabolt.journal.file import JOURNAL, read_journal
from parabolt.journal.history import TrialHistory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from parabolt.journal.history import Trial

_HEADINGS = (
    "trial", "configuration", "status", "iterations/s", "best so far", "peak memory, GiB",
    "duration, s", "attempts", "why",
)  # fmt: skip

_PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>parabolt: $title</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem;
       color: #1a1a1a; }
table { border-collapse: collapse; margin: 1rem 0; font-size: .9rem; }
th, td { padding: .25rem .8rem; text-align: right; border-bottom: 1px solid #ddd; }
th:nth-child(2), td:nth-child(2), th:last-child, td:last-child { text-align: left; }
tr.best { font-weight: 600; }
.note { color: #555; font-size: .9rem; }
pre { background: #f4f4f4; padding: .6rem; white-space: pre-wrap; }
</style></head><body>
<h1>$title</h1>
$summary
<h2>Trials</h2>
<table><thead><tr>$headings</tr></thead><tbody>
$rows
</tbody></table>
<p class="note">Throughput and memory are measured in the timed steps of each trial. A stopped trial
could not beat the best one any more: its throughput is that of the steps it did, and it can't win.
A crashed trial says nothing of its configuration. Each trial's command, environment, logs and
report are in its folder beside the journal.</p>
</body></html>
""")


def write_trial_report(folder: Path, out: Path) -> Path:
    """Writes `trials.html`.

    Args:
        folder: Folder of the journal.
        out: Where to write.

    Returns:
        The path of the page.

    Raises:
        JournalError: If the journal can't be read.
        StoreError: If the page can't be written; then the one before stays.
    """
    history = TrialHistory.of(read_journal(folder / JOURNAL))
    about = history.about
    verb = "Search" if about.purpose == "tune" else "Sweep"
    page = _PAGE.substitute(
        title=html.escape(f"{verb} on {about.instance}"),
        summary=_summary(history, folder),
        headings="".join(f"<th>{html.escape(heading)}</th>" for heading in _HEADINGS),
        rows="\n".join(_rows(history)),
    )
    path = out / "trials.html"
    write_whole(path, page.encode())
    return path


def _summary(history: TrialHistory, folder: Path) -> str:
    about, best = history.about, history.best
    hours = history.wall_time_s * about.n_gpus / 3600.0
    saved = history.saved_s * about.n_gpus / 3600.0
    spent = (
        f"<p>{len(history.told)} trials, {hours:.3f} GPU-hours spent, about {saved:.3f} saved by "
        "early termination (an estimate).</p>"
    )
    if best is None:
        return f"<p>No configuration finished.</p>{spent}"
    capacity = "" if about.memory_gib is None else f" of {about.memory_gib:g}"
    memory = f"{best.peak_memory_gib:.4g}{capacity} GiB"
    numbers = ", ".join(str(trial.number) for trial in best.trials)
    plural = "s" * (len(best.trials) > 1)
    return (
        f"<p><strong>{html.escape(str(best.configuration))}</strong>: "
        f"{best.throughput:.5g} iterations/s, {memory}, measured in trial{plural} {numbers}."
        f"</p>{_launched(folder / best.trials[-1].folder)}{spent}"
    )


def _launched(folder: Path) -> str:
    """The command of a trial, where its file is there and whole."""
    try:
        words = json.loads((folder / "command.json").read_text(encoding="utf-8"))
        line = shlex.join(map(str, words))
    except (OSError, ValueError, TypeError):
        return ""
    return f"<p>It was launched by</p><pre>{html.escape(line)}</pre>"


def _rows(history: TrialHistory) -> Iterator[str]:
    best, leader = float("-inf"), history.best
    best_trials = () if leader is None else leader.trials
    for trial in history.told:
        if trial.outcome.is_feasible:
            best = max(best, trial.outcome.throughput)
        cells = "".join(f"<td>{html.escape(cell)}</td>" for cell in _cells(trial, best))
        kind = ' class="best"' if trial in best_trials else ""
        yield f"<tr{kind}>{cells}</tr>"


def _cells(trial: Trial, best: float) -> Iterator[str]:
    outcome = trial.outcome
    yield str(trial.number)
    yield str(trial.configuration)
    yield str(outcome.status)
    for figure in (outcome.throughput, best, outcome.peak_memory_gib):
        yield f"{figure:.4g}" if 0.0 < figure < float("inf") else ""
    yield f"{trial.wall_time_s:.1f}"
    yield str(trial.n_launched)
    yield trial.reason
