"""What trials were measured on, and whether that is what they are asked about."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from parabolt.errors import TableError
from parabolt.instances.catalogue import load_instance
from parabolt.instances.cluster_words import parse_cluster
from parabolt.instances.models import load_model

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from parabolt.instances.specs import Instance

#: Columns that state it in words, as the options of `parabolt plan` do.
_WORDS = ("model", "cluster", "sequence_length", "batch_size")
_OPTIONAL = ("micro_batch_size", "recomputation")
#: Columns of a file of trials that say what they were measured on.
CONTEXT = ("instance", *_WORDS, *_OPTIONAL)


def differences(a: Instance, b: Instance) -> list[str]:
    """Keys of model, cluster and workload that both instances state, and that differ."""
    return [
        text
        for section in ("model", "cluster", "workload")
        for text in _section_differences(section, getattr(a, section), getattr(b, section))
    ]


def check_stated(names: Collection[str]) -> None:
    """Raises `TableError` unless the columns of a file say what its trials were measured on."""
    if "instance" not in names and not set(_WORDS) <= set(names):
        raise TableError(
            "expected what the trials were measured on, in the column instance or in the columns "
            f"{', '.join(_WORDS)}; got {', '.join(names)}"
        )


def row_differences(row: Mapping[str, str | None], instance: Instance, folder: Path) -> list[str]:
    """In which keys a row states another model, cluster or workload than those of an instance.

    Args:
        row: Cells by the names of `CONTEXT`; an empty one says nothing.
        instance: The instance.
        folder: Where a relative path starts.

    Raises:
        TableError: If a cell that must state something is empty, or is no number.
        ParaboltError: For a model, a GPU or an instance that isn't known.
    """
    stated = {name: text for name in CONTEXT if (text := (row.get(name) or "").strip())}
    if "instance" in stated:
        named = stated["instance"]
        own = load_instance(str(folder / named) if named.endswith(".toml") else named)
        return differences(own, instance)
    if missing := [name for name in _WORDS if name not in stated]:
        raise TableError(f"{missing[0]}: expected what the trial was measured on, got none")
    name, *figures = stated["model"].split()
    model = " ".join([str(folder / name) if name.endswith(".json") else name, *figures])
    found = [
        *_section_differences("model", load_model(model), instance.model),
        *_section_differences("cluster", parse_cluster(stated["cluster"]), instance.cluster),
    ]
    for name in (*_WORDS[2:], *_OPTIONAL):
        value = getattr(instance.workload, name)
        if name in stated and str(value) != stated[name]:
            found.append(f"workload.{name} ({stated[name]}, not {value})")
    return found


def _section_differences(section: str, one: Any, other: Any) -> list[str]:
    found = []
    for field in fields(one):
        values = getattr(one, field.name), getattr(other, field.name)
        if None not in values and values[0] != values[1]:
            found.append(f"{section}.{field.name} ({values[0]}, not {values[1]})")
    return found
