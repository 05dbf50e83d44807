"""Specs from TOML files."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from parabolt.documents import check_keys, checked_text, parse_toml, read_text, shown
from parabolt.errors import ParaboltError, SpecError
from parabolt.instances.catalogue import load_instance
from parabolt.trials.spec.spec import Budget, LauncherSpec, OptimizerSpec, Spec, TrialSpec
from parabolt.trials.spec.template import Template
from parabolt.trials.stopping import StoppingRule

if TYPE_CHECKING:
    from pathlib import Path

_KEYS = (
    "instance", "command", "framework", "environment", "trial", "launcher", "budget", "optimizer",
    "early_termination",
)  # fmt: skip


def load_spec(path: Path) -> Spec:
    """Reads a spec.

    Raises:
        SpecError: Naming the file, section and key at fault.
    """
    text = read_text(path, "spec", SpecError)
    return parse_spec(text, origin=str(path), folder=path.resolve().parent)


def parse_spec(text: str, *, origin: str, folder: Path) -> Spec:
    """The spec that a TOML text describes.

    Args:
        text: TOML with `instance`, `command`, `framework` and the tables `environment`, `trial`,
            `launcher`, `budget`, `optimizer` and `early_termination`; all but the first two have
            defaults.
        origin: Where the text comes from, for error messages.
        folder: Where relative paths start.

    Raises:
        SpecError: Naming the section and key at fault.
    """
    try:
        return _spec(parse_toml(text, SpecError), folder)
    except ParaboltError as error:
        raise SpecError(f"{origin}: {error}") from error


def _spec(document: dict[str, Any], folder: Path) -> Spec:
    required = ("instance", "command")
    check_keys("spec", document, required=required, known=_KEYS, error=SpecError)
    optimizer = dict(_table(document, "optimizer"))
    return Spec(
        instance=load_instance(_instance(document["instance"], folder)),
        command=Template.parse(_command(document["command"])),
        framework=checked_text("framework", document["framework"], SpecError)
        if "framework" in document
        else None,
        environment=tuple(
            (name, Template((checked_text(f"environment.{name}", value, SpecError),)))
            for name, value in _table(document, "environment").items()
        ),
        folder=folder,
        trial=_section(document, "trial", TrialSpec),
        launcher=_section(document, "launcher", LauncherSpec),
        budget=_section(document, "budget", Budget) if "budget" in document else None,
        optimizer=OptimizerSpec(
            name=checked_text(
                "optimizer.name", optimizer.pop("name", OptimizerSpec.name), SpecError
            ),
            seed=optimizer.pop("seed", OptimizerSpec.seed),
            options=optimizer,
        ),
        stopping=_section(document, "early_termination", StoppingRule)
        if "early_termination" in document
        else None,
    )


def _instance(name: Any, folder: Path) -> str:
    text = checked_text("instance", name, SpecError)
    return str(folder / text) if text.endswith(".toml") else text


def _command(command: Any) -> str | list[str]:
    is_list = isinstance(command, list) and all(isinstance(part, str) for part in command)
    if isinstance(command, str) or is_list:
        return command  # type: ignore[no-any-return] # a text, or a list of texts as just checked
    raise SpecError(f"command: expected a text or a list of texts, got {shown(command)}")


def _section(document: dict[str, Any], name: str, of: type) -> Any:
    table = _table(document, name)
    if of is TrialSpec and "memory_gb" in table:  # version 0.1: a GPU's "GB" was a GiB
        table = {("memory_gib" if k == "memory_gb" else k): v for k, v in table.items()}
    types = {f.name: str(f.type) for f in fields(of)}
    check_keys(f"[{name}]", table, known=types, error=SpecError)
    try:
        return of(**{key: _typed(key, value, types[key]) for key, value in table.items()})
    except ParaboltError as error:
        raise SpecError(f"[{name}] {error}") from error


def _typed(key: str, value: Any, annotation: str) -> Any:
    """A TOML value as its field has it; numbers are checked by the section itself."""
    if annotation.startswith("tuple"):
        of = int if "int" in annotation else str
        if not isinstance(value, list) or not all(type(item) is of for item in value):
            raise SpecError(f"{key}: expected a list of {of.__name__}, got {shown(value)}")
        return tuple(value)
    if annotation == "str":
        return checked_text(key, value, SpecError)
    if annotation == "float" and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise SpecError(f"{key}: expected a number, got {shown(value)}")
    if annotation == "int" and type(value) is not int:
        raise SpecError(f"{key}: expected a whole number, got {shown(value)}")
    return value


def _table(document: dict[str, Any], name: str) -> dict[str, Any]:
    table = document.get(name, {})
    if not isinstance(table, dict):
        raise SpecError(f"{name}: expected a table, got {shown(table)}")
    return table
