"""What a study's results were made with: saved beside them, and checked before more are added."""

from __future__ import annotations

import inspect
import json
import os
import platform
import sys
from dataclasses import asdict
from hashlib import sha256
from importlib import metadata
from typing import TYPE_CHECKING, Any

from parabolt.errors import StudyError
from parabolt.experiments.store import write_whole
from parabolt.optimizers.registry import is_own, optimizer_class

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from parabolt.experiments.study import OptimizerChoice, Study
    from parabolt.problems.problem import Problem

#: Version of the layout of `study.json`.
FORMAT = 1

#: Libraries whose major version may change results.
_PACKAGES = ("parabolt", "numpy", "scipy", "optuna", "cmaes")


def manifest(study: Study, problems: Sequence[Problem]) -> dict[str, Any]:
    """The resolved study as plain values: every default filled in, data, packages, machine."""
    return {
        "format": FORMAT,
        "problems": {
            problem.name: {
                "data_version": problem.version,
                "content_hash": problem.content_hash,
                "protocol": asdict(study.protocol_of(problem.name)),
            }
            for problem in problems
        },
        "optimizers": {
            choice.label: {
                "name": choice.name,
                "options": _all_options(choice),
                **({"code": _code_hash(choice.name)} if is_own(choice.name) else {}),
            }
            for choice in study.optimizers
        },
        "seeds": list(study.seeds),
        "executor": study.executor,
        "packages": {name: v for name in _packages(study) if (v := _version(name))},
        "machine": {
            "python": platform.python_version(),
            "system": platform.system(),
            "processor": platform.machine(),
            "n_cores": os.cpu_count(),
        },
    }


def save_manifest(found: dict[str, Any], folder: Path) -> None:
    """Writes `study.json`, keeping what an earlier study of the same directory had."""
    found = json.loads(json.dumps(found))  # as it will be read: a tuple is a list
    before = load_manifest(folder)
    if before:
        check_compatible(before, found, folder)
        for part in ("problems", "optimizers"):
            found = {**found, part: {**before[part], **found[part]}}
        found = {**found, "seeds": sorted({*before["seeds"], *found["seeds"]})}
    write_whole(folder / "study.json", (json.dumps(found, indent=2) + "\n").encode())


def load_manifest(folder: Path) -> dict[str, Any] | None:
    """What `study.json` says, or None where there is none.

    Raises:
        StudyError: If it can't be read, or is of a later format.
    """
    path = folder / "study.json"
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        later = found["format"] > FORMAT
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StudyError(f"{path} is no study of parabolt: {error!r}") from error
    if later:
        raise StudyError(
            f"{path}: expected format {FORMAT} or before, got {found['format']}; "
            "try a newer parabolt"
        )
    return found


def check_compatible(before: dict[str, Any], now: dict[str, Any], folder: Path) -> None:
    """Raises unless results of `now` may stand beside those of `before`.

    Raises:
        StudyError: If the data, the protocol, an optimizer's options or the major version of a
            package differ.
    """
    for part in ("problems", "optimizers"):
        for name in set(before[part]) & set(now[part]):
            if before[part][name] != now[part][name]:
                differing = [
                    f"{key}: {before[part][name].get(key)} there, {value} now"
                    for key, value in now[part][name].items()
                    if before[part][name].get(key) != value
                ]
                raise StudyError(
                    f"{folder} holds results of another {name} ({'; '.join(differing)}); "
                    "try another directory"
                )
    for name in set(before["packages"]) & set(now["packages"]):
        there, here = before["packages"][name], now["packages"][name]
        if _major(there) != _major(here):
            raise StudyError(
                f"{folder} holds results of {name} {there}, and {here} is installed; "
                f"try another directory, or install {name}=={there}"
            )


def _packages(study: Study) -> list[str]:
    """Libraries of this package, and those of other libraries' optimizers in the study."""
    guests = [getattr(optimizer_class(c.name), "libraries", ()) for c in study.optimizers]
    return [*_PACKAGES, *dict.fromkeys(library for found in guests for library in found)]


def _all_options(choice: OptimizerChoice) -> dict[str, Any]:
    """Options as given, and the defaults of all others."""
    options: dict[str, Any] = {}
    for base in reversed(optimizer_class(choice.name).__mro__):
        init = base.__dict__.get("__init__")
        if init is None or base is object:
            continue
        for name, parameter in inspect.signature(init).parameters.items():
            if parameter.kind is parameter.KEYWORD_ONLY:
                options[name] = parameter.default
    for name in ("seed", "rng", "repeats"):  # the run's own
        options.pop(name, None)
    return {**options, **dict(choice.options)}


def _code_hash(name: str) -> str:
    """SHA-256 of the module of an own optimizer, which has no version that would tell a change."""
    return sha256(
        inspect.getsource(sys.modules[optimizer_class(name).__module__]).encode()
    ).hexdigest()


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _major(version: str) -> str:
    return version.partition(".")[0]
