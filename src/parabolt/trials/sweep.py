"""`sweep`: every configuration of a lattice measured, as the raw export of a table."""

from __future__ import annotations

import csv
import math
import shlex
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import parabolt
from parabolt.files import unfinished
from parabolt.journal.file import JOURNAL
from parabolt.outcome import Status
from parabolt.tables.publishing.provenance import Provenance
from parabolt.tables.schema import context_values
from parabolt.trials.candidates import candidates_of
from parabolt.trials.session import Session, SessionState

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from parabolt.instances.specs import Instance
    from parabolt.journal.history import Trial, TrialHistory
    from parabolt.trials.spec.spec import Spec

#: Name of the export in a sweep's folder.
EXPORT = "sweep.csv"
_OUTPUTS = (
    "ran_successfully", "throughput_mean", "throughput_std", "peak_mem_normalised", "overall_time",
    "all_time_steps", "peak_mem", "peak_mem_per_gpu", "source_feasible", "source_throughput",
    "source_memory",
)  # fmt: skip


def sweep(
    spec: Spec,
    folder: Path,
    *,
    retry_crashed: bool = False,
    observer: Callable[[SessionState], None] | None = None,
) -> TrialHistory:
    """Measures all configurations of the lattice, in lattice order, and writes the export.

    A sweep that was killed goes on where it was. What the spec's framework can't express is left
    out, and of configurations that give the same command the first is measured. The export holds a
    row for each configuration that finished or ran out of memory; of all others nothing is known.

    Args:
        spec: The spec; its budget, optimizer and early termination are not used.
        folder: Where journal, trials and export are kept.
        retry_crashed: Whether trials that an earlier session set aside run again first.
        observer: Called at each look at a running trial and at each event.

    Returns:
        All trials.

    Raises:
        JournalError: If another process is writing there, or the spec has changed.
        LaunchError: If nothing can be launched, or one trial after the other crashes.
        StoreError: If the export can't be written.
    """
    possible = candidates_of(spec)
    candidates = possible.space.candidates
    with Session(
        spec, folder, purpose="sweep", retry_crashed=retry_crashed, observer=observer
    ) as session:
        history = session.history
        for line in possible.left_out:
            session.say(f"not measured: {line}")
        for twin, measured in possible.twins[:1]:
            session.say(f"such as {twin}, which is {measured}: it is measured once")
        while (trial := history.under_way) is not None or len(history.trials) < len(candidates):
            session.run(trial or session.ask(candidates[len(history.trials)]))
        write_export(session.history, spec, folder / EXPORT)
        _provenance(spec, folder).save(folder / EXPORT)
        return session.history


def _provenance(spec: Spec, folder: Path) -> Provenance:
    """How the sweep was measured; its date is that of the last record."""
    framework = f"{spec.framework}, " if spec.framework else ""
    last = datetime.fromtimestamp((folder / JOURNAL).stat().st_mtime, UTC)
    return Provenance(
        gpu=spec.instance.cluster.gpu or "",
        software=f"{framework}measured with parabolt {parabolt.__version__}",
        command=shlex.join(spec.command.arguments),
        date=last.date().isoformat(),
    )


def write_export(history: TrialHistory, spec: Spec, path: Path) -> None:
    """Writes the trials with a definite outcome as the raw export of a table.

    Floats are written so that they read back bit for bit. Step times are those of the timed steps.

    Raises:
        StoreError: If the file can't be written.
    """
    context = context_values(spec.instance)
    knobs = [axis.column for axis in spec.instance.encoding.axes]
    with unfinished(path) as part, part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*knobs, *_OUTPUTS, *context])
        writer.writeheader()
        for trial in history.told:
            if (outputs := _outputs(trial, spec.instance)) is not None:
                writer.writerow({**_inputs(trial, spec.instance), **outputs, **context})


def _inputs(trial: Trial, instance: Instance) -> dict[str, int | str]:
    return {
        axis.column: axis.cell(getattr(trial.configuration, axis.knob.name))
        for axis in instance.encoding.axes
    }


def _outputs(trial: Trial, instance: Instance) -> dict[str, object] | None:
    outcome, statistics = trial.outcome, trial.statistics
    if outcome.status is Status.OOM:
        return {
            "ran_successfully": False,
            "peak_mem": math.inf,
            "peak_mem_normalised": outcome.memory_margin,
            "source_feasible": "measured",
        }
    if outcome.status is not Status.OK or statistics is None:
        return None
    gib = instance.gib_per_peak_mem
    return {
        "ran_successfully": True,
        "throughput_mean": statistics["throughput"],
        "throughput_std": statistics["throughput_std"],
        "peak_mem_normalised": outcome.memory_margin,
        "overall_time": outcome.wall_time_s,
        "all_time_steps": statistics["step_times_s"],
        "peak_mem": outcome.peak_memory_gib / gib,
        "peak_mem_per_gpu": [peak / gib for peak in statistics["peak_memory_per_gpu_gib"]],
        "source_feasible": "measured",
        "source_throughput": "measured",
        "source_memory": "measured",
    }
