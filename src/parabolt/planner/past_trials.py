"""Past trials as evidence, wherever they stand: a table, a journal, a sweep's export, a CSV file.

The one place that turns names into evidence: `study` and `tune` do it for the option `history`,
`suggest` and `plan` for `--history` and `--trials`.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parabolt.costmodel.calibration.evidence import Evidence
from parabolt.costmodel.layout import configurations_of
from parabolt.documents import check_regular, is_there
from parabolt.errors import OptionError, TableError
from parabolt.journal.file import JOURNAL, read_journal
from parabolt.journal.history import TrialHistory
from parabolt.outcome import Outcomes
from parabolt.planner.context import differences
from parabolt.planner.trials_file import read_trials
from parabolt.tables.sources import load_table
from parabolt.tables.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from parabolt.instances.specs import Instance

#: Options of `make_optimizer` itself, which no table of options may set.
_RESERVED = ("name", "space", "seed", "rng")


def optimizer_options(options: Mapping[str, Any], *, folder: Path | None = None) -> dict[str, Any]:
    """The options of an optimizer as it takes them: what `history` names becomes evidence.

    Args:
        options: As a spec or a study states them.
        folder: Where relative paths in `history` start; None for the working directory.

    Raises:
        OptionError: For an option that a spec can't set, or a history that is no list of names.
        UnknownNameError: For a history of a name that nothing has.
        TableError: For a file that can't be read, or that doesn't say of which instance it is.
        JournalError: The same of a journal.
    """
    for name in _RESERVED:
        if name in options:
            raise OptionError(f"{name}: expected options of the optimizer, got one of parabolt's")
    if "history" not in options:
        return dict(options)
    names = options["history"]
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise OptionError(f"history: expected a list of tables or journals, got {names!r}")
    return {**options, "history": [read_history(name, folder=folder) for name in names]}


def read_history(source: str, *, folder: Path | None = None) -> Evidence:
    """Trials of any instance, which the source itself says.

    Args:
        source: Name or address of a table, a journal or its directory, or a sweep's export beside
            its journal.
        folder: Where a relative path starts; None for the working directory.

    Raises:
        UnknownNameError: If it is no file, and no table has that name.
        TableError: If it is a CSV file without a journal beside it.
        JournalError: If a journal can't be read, or doesn't say of which instance it is.
    """
    path = (folder or Path()) / source
    if (journal := _journal(path)) is not None:
        return _of_journal(journal)
    if path.suffix != ".csv" or not is_there(path):
        return _of_table(load_table(str(path) if is_there(path) else source))
    if (beside := _journal(path.parent)) is not None:
        history = TrialHistory.of(read_journal(beside))
        return _of_table(Table.from_csv(path, history.about.load_instance()))
    raise TableError(
        f"{path}: expected a file that says of which instance it is, got a CSV file without a "
        "journal beside it; try the directory of the sweep, or a table that was built of it"
    )


def read_own_trials(source: str, instance: Instance) -> Evidence:
    """Trials of one instance.

    Args:
        source: A CSV file of trials, a sweep's export, a journal or its directory, or a table.
        instance: The instance.

    Raises:
        TableError: If it can't be read, or is of another model, cluster or workload.
        JournalError: If a journal can't be read.
    """
    path = Path(source)
    if path.suffix == ".csv" and not _is_export(path):
        return read_trials(path, instance)
    if path.suffix == ".csv" and _journal(path.parent) is None:
        return _of_table(Table.from_csv(path, instance))
    found = read_history(source)
    if differing := differences(found.instance, instance):
        raise TableError(
            f"{source}: expected trials of {instance.name}, got some of {found.instance.name}, "
            f"which differs in {', '.join(differing)}; try them as history"
        )
    configurations = configurations_of(found.instance, found.configurations)
    return Evidence(instance, configurations, found.outcomes)


def _journal(path: Path) -> Path | None:
    """The journal that a path names, as a file or by its directory; None if it names none."""
    if path.is_dir():
        path /= JOURNAL
    return path if path.suffix == ".jsonl" and is_there(path) else None


def _of_journal(path: Path) -> Evidence:
    history = TrialHistory.of(read_journal(path))
    configurations = [trial.configuration for trial in history.told]
    outcomes = Outcomes.of([trial.outcome for trial in history.told])
    return Evidence(history.about.load_instance(), configurations, outcomes)


def _of_table(table: Table) -> Evidence:
    return Evidence(table.instance, table.space.encoded, table.outcomes)


def _is_export(path: Path) -> bool:
    """Whether a CSV file has the columns of a table."""
    try:
        check_regular(path)
        with path.open(encoding="utf-8-sig", newline="") as file:
            return "ran_successfully" in next(csv.reader(file), [])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"cannot read {path}: {error}") from error
