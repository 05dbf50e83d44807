"""Trials from a CSV file: one line per run, with its knobs and what it gave."""

from __future__ import annotations

import csv
import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from parabolt.costmodel.calibration.evidence import Evidence
from parabolt.documents import check_regular
from parabolt.errors import ParaboltError, TableError
from parabolt.outcome import Outcome, Outcomes, Source, Status
from parabolt.planner.context import CONTEXT, check_stated, row_differences
from parabolt.space.configuration import Configuration
from parabolt.space.knobs import KNOBS

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from parabolt.instances.specs import Instance

#: Columns beside the knobs.
_OUTPUTS = ("status", "throughput", "step_time_s", "peak_memory_gib")


def read_trials(path: str | os.PathLike[str], instance: Instance) -> Evidence:
    """Reads trials of an instance.

    Columns: the knobs by name with raw sizes or words (`dp,tp,pp,bucket,zero`, ...; one left out is
    neutral), `status` (`ok` or `oom`, ...), `throughput` in iterations/s or `step_time_s`, and
    optionally `peak_memory_gib`, which version 0.1 called `peak_memory_gb`. Empty cells are
    unknown. What the trials were measured on is stated in the column `instance` (a built-in name,
    or a TOML file; relative to the file), or in the columns `model` and `cluster` (in words),
    `sequence_length` and `batch_size`, and as wanted `micro_batch_size` and `recomputation`.

    Raises:
        TableError: If the file can't be read, doesn't say what its trials were measured on, or a
            line is no trial of the instance; with its line number.
    """
    try:
        check_regular(path)
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            former = {"peak_memory_gb": "peak_memory_gib"}
            reader.fieldnames = [former.get(name, name) for name in reader.fieldnames or []]
            _check_header(path, reader.fieldnames)
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"cannot read {path}: {error}") from error
    configurations, outcomes = [], []
    checked: set[tuple[str | None, ...]] = set()
    for line, row in enumerate(rows, start=2):
        try:
            _check_cells(row)
            _check_context(row, instance, Path(path).parent, checked)
            configuration = Configuration.from_dict(
                {k: KNOBS[k].parse(row[k]) for k in KNOBS if row.get(k)}
            )
            instance.check(configuration)
            outcomes.append(_outcome(row, instance.cluster.memory_gib))
        except ParaboltError as error:
            raise TableError(f"{path}, line {line}: {error}") from error
        configurations.append(configuration)
    return Evidence(instance, configurations, Outcomes.of(outcomes))


def _check_header(path: str | os.PathLike[str], names: Sequence[str]) -> None:
    known = [*KNOBS, *_OUTPUTS, *CONTEXT]
    if unknown := [name for name in names if name not in known]:
        raise TableError(f"{path}: expected columns among {', '.join(known)}, got {unknown}")
    if double := [name for name, n in Counter(names).items() if n > 1]:
        raise TableError(f"{path}: expected each column once, got {', '.join(double)} twice")
    missing = [name for name in ("bucket", "status") if name not in names]
    if missing or not {"throughput", "step_time_s"} & set(names):
        raise TableError(
            f"{path}: expected the columns bucket, status, and throughput or step_time_s, "
            f"got {', '.join(names)}"
        )
    try:
        check_stated(names)
    except TableError as error:
        raise TableError(f"{path}: {error}") from error


def _check_cells(row: dict[str, str]) -> None:
    """Raises unless a row has as many cells as the header: a reader fills up with None."""
    n = len(row) - (None in row)
    if None in row or None in row.values():
        got = "more" if None in row else "fewer"
        raise TableError(f"expected {n} cells, as the header has, got {got}")


def _check_context(
    row: dict[str, str],
    instance: Instance,
    folder: Path,
    checked: set[tuple[str | None, ...]],
) -> None:
    """Raises unless a row is of the instance; `checked` holds what was found right before."""
    stated = tuple(row.get(name) for name in CONTEXT)
    if stated in checked:
        return
    if differing := row_differences(row, instance, folder):
        raise TableError(
            f"expected trials of {instance.name}, got another {', '.join(differing)}; try a table "
            "or a journal as history"
        )
    checked.add(stated)


def _outcome(row: dict[str, str], capacity_gib: float) -> Outcome:
    try:
        status = Status(row["status"] or "")
    except ValueError as error:
        raise TableError(
            f"status: expected one of {', '.join(Status)}, got {row['status']!r}"
        ) from error
    if status is Status.OOM:
        return Outcome.oom()
    if status is not Status.OK:
        return Outcome(status)
    step_time_s, throughput = _positive(row, "step_time_s"), _positive(row, "throughput")
    if math.isnan(throughput):
        throughput = 1.0 / step_time_s
    if math.isnan(throughput):
        raise TableError("throughput: expected a number where the run finished, got none")
    peak = _positive(row, "peak_memory_gib")
    return Outcome(
        Status.OK,
        throughput,
        peak_memory_gib=peak,
        memory_margin=peak / capacity_gib - 1.0,
        throughput_source=Source.MEASURED,
        memory_source=Source.NONE if math.isnan(peak) else Source.MEASURED,
    )


def _positive(row: dict[str, str], name: str) -> float:
    text = row.get(name) or "nan"
    try:
        number = float(text)
    except ValueError as error:
        raise TableError(f"{name}: expected a number, got {text!r}") from error
    if number <= 0.0 or math.isinf(number):
        raise TableError(f"{name}: expected a positive number, got {text}")
    return number
