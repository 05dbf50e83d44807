"""What a study's results were made with: saved beside them, and read to know which are wanted."""

from __future__ import annotations

import inspect
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from parabolt.documents import read_bytes
from parabolt.errors import ParaboltError, StudyError
from parabolt.experiments.environment import environment
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.run_key import RunKey
from parabolt.experiments.study import OptimizerChoice, Study, read_study, study_of
from parabolt.files import write_whole
from parabolt.optimizers.registry import find_optimizer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from parabolt.problems.problem import Problem

#: Version of the layout of `study.json`.
FORMAT = 2

FILE_NAME = "study.json"


@dataclass(frozen=True)
class Manifest:
    """A study with everything resolved.

    Attributes:
        study: The study.
        keys: Every run that it wants.
        environment: Versions of Python and libraries, system and processor of the last session.
    """

    study: Study
    keys: tuple[RunKey, ...]
    environment: dict[str, str]


def save_manifest(
    study: Study, problems: Sequence[Problem], keys: Iterable[RunKey], folder: Path
) -> None:
    """Writes `study.json`: the study, and what its names stood for.

    Args:
        study: The study.
        problems: Its problems, in its order.
        keys: Keys of its runs.
        folder: Where to write.

    Raises:
        StoreError: If it can't be written.
    """
    codes = {key.optimizer: key.code for key in keys}
    about = {
        "format": FORMAT,
        "study": study.as_json(),
        "problems": [
            {
                "address": address,
                "name": problem.name,
                "data_version": problem.version,
                "content_hash": problem.content_hash,
                "protocol": asdict(study.protocol_of(problem.name)),
            }
            for address, problem in zip(study.problems, problems, strict=True)
        ],
        "optimizers": [
            {
                "label": choice.label,
                "name": choice.name,
                "options": all_options(choice),
                "code": codes[choice.label],
            }
            for choice in study.optimizers
        ],
        "environment": environment(libraries_of(study)),
    }
    write_whole(folder / FILE_NAME, (json.dumps(about, indent=2) + "\n").encode())


def load_manifest(folder: Path) -> Manifest | None:
    """What `study.json` says, or None where there is none.

    Raises:
        StudyError: If it can't be read, or is of a later format.
    """
    path = folder / FILE_NAME
    try:
        found = json.loads(read_bytes(path))
        version = int(found["format"])
        if version > FORMAT:
            raise StudyError(
                f"{path}: expected format {FORMAT} or before, got {version}; try a newer parabolt"
            )
        return _of_first_format(found, folder) if version == 1 else _manifest(found)
    except FileNotFoundError:
        return None
    except ParaboltError as error:
        raise StudyError(f"{path}: {error}") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StudyError(f"{path} is no study of parabolt: {error!r}") from error


def libraries_of(study: Study) -> list[str]:
    """Distributions of other libraries that the study's optimizers need."""
    found = [
        getattr(choice.source or find_optimizer(choice.name), "libraries", ())
        for choice in study.optimizers
    ]
    return list(dict.fromkeys(library for libraries in found for library in libraries))


def all_options(choice: OptimizerChoice) -> dict[str, Any]:
    """Options as given, and the defaults of all others where a class states them."""
    options: dict[str, Any] = {}
    made = choice.source or find_optimizer(choice.name)
    for base in reversed(made.__mro__) if isinstance(made, type) else ():
        init = base.__dict__.get("__init__")
        if init is None or base is object:
            continue
        for name, parameter in inspect.signature(init).parameters.items():
            if parameter.kind is parameter.KEYWORD_ONLY:
                options[name] = parameter.default
    for name in ("seed", "rng", "repeats"):  # the run's own
        options.pop(name, None)
    options |= dict(choice.options)
    return {name: value for name, value in options.items() if _is_plain(value)}


def _is_plain(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def _manifest(found: dict[str, Any]) -> Manifest:
    study = study_of(found["study"])
    codes = {entry["label"]: entry["code"] for entry in found["optimizers"]}
    keys = [
        RunKey(
            problem=problem["name"],
            optimizer=choice.label,
            seed=seed,
            protocol=Protocol(**problem["protocol"]),
            data_version=problem["data_version"],
            content_hash=problem["content_hash"],
            method=choice.name,
            options=choice.options,
            code=codes[choice.label],
            parabolt=found["environment"]["parabolt"],
        )
        for problem in found["problems"]
        for choice in study.optimizers
        for seed in study.seeds
    ]
    return Manifest(study, tuple(keys), found["environment"])


def _of_first_format(found: dict[str, Any], folder: Path) -> Manifest:
    """The manifest of a study that version 0.1 ran; its study file says what was chosen."""
    study = read_study(folder / "study.toml")
    keys = [
        RunKey(
            problem=name,
            optimizer=choice.label,
            seed=seed,
            protocol=Protocol(**about["protocol"]),
            data_version=about["data_version"],
            content_hash=about["content_hash"],
            method=choice.name,
            options=choice.options,
            parabolt=found["packages"]["parabolt"],
        )
        for name, about in found["problems"].items()
        for choice in study.optimizers
        for seed in study.seeds
    ]
    return Manifest(study, tuple(keys), {**found["packages"], **found["machine"]})
