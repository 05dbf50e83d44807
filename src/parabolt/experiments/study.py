"""A study: problems x optimizers x seeds under one protocol, described by a TOML file.

problems = ["pco32", "pco64"]
optimizers = ["random", { name = "tpe", label = "tpe-20", options = { n_initial = 20 } }]
seeds = 10                      # 0 to 9; or a list of seeds
executor = "local"

[protocol]                      # what differs from the published protocol, if anything
n_evaluations = 30
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from parabolt.errors import StudyError
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.run import RunKey

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from parabolt.problems.problem import Problem


@dataclass(frozen=True)
class OptimizerChoice:
    """An optimizer of a study.

    Attributes:
        name: Name in the registry.
        label: Unique in the study; shown everywhere.
        options: Options as sorted pairs.
    """

    name: str
    label: str
    options: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Study:
    """What to run.

    Attributes:
        problems: Names of problems.
        optimizers: Optimizers, with distinct labels.
        seeds: Seeds.
        protocol: Fields of `Protocol` that differ from the published protocol, as sorted pairs.
        executor: Address of the executor.
    """

    problems: tuple[str, ...]
    optimizers: tuple[OptimizerChoice, ...]
    seeds: tuple[int, ...]
    protocol: tuple[tuple[str, Any], ...] = field(default=())
    executor: str = "local"

    def protocol_of(self, problem: str) -> Protocol:
        """The protocol of a problem: the published one, changed as the study says."""
        return replace(Protocol.published(problem), **dict(self.protocol))

    def keys(self, problems: Sequence[Problem]) -> list[tuple[Problem, RunKey]]:
        """Every run, by problem, optimizer and seed."""
        return [
            (
                problem,
                RunKey.of(
                    problem,
                    choice.label,
                    seed,
                    self.protocol_of(problem.name),
                    method=choice.name,
                    options=dict(choice.options),
                ),
            )
            for problem in problems
            for choice in self.optimizers
            for seed in self.seeds
        ]


def read_study(path: Path) -> Study:
    """The study that a TOML file describes.

    Raises:
        StudyError: If the file can't be read, naming the key at fault.
        OptionError: For a protocol that cannot be.
    """
    try:
        return parse_study(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"cannot read study file {path}: {error}") from error
    except StudyError as error:
        raise StudyError(f"{path}: {error}") from error


def parse_study(text: str) -> Study:
    """The study that a TOML text describes; see `read_study`."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StudyError(f"expected TOML, got {error}") from error
    _check_keys("study", document, {"problems", "optimizers"}, {"seeds", "protocol", "executor"})
    protocol = document.get("protocol", {})
    _check_keys("[protocol]", protocol, set(), {f.name for f in fields(Protocol)})
    study = Study(
        problems=_texts("problems", document["problems"]),
        optimizers=_choices(document["optimizers"]),
        seeds=_seeds(document.get("seeds", 10)),
        protocol=tuple(sorted(protocol.items())),
        executor=_texts("executor", [document.get("executor", "local")])[0],
    )
    for problem in study.problems:
        study.protocol_of(problem)
    return study


def format_study(study: Study) -> str:
    """The TOML text of a study; the inverse of `parse_study`."""
    optimizers = [_format_choice(choice) for choice in study.optimizers]
    lines = [
        f"problems = {_toml(list(study.problems))}",
        f"optimizers = [{', '.join(optimizers)}]",
        f"seeds = {_toml(list(study.seeds))}",
        f"executor = {_toml(study.executor)}",
    ]
    if study.protocol:
        lines += ["", "[protocol]", *(f"{name} = {_toml(v)}" for name, v in study.protocol)]
    return "\n".join(lines) + "\n"


def _format_choice(choice: OptimizerChoice) -> str:
    if choice == OptimizerChoice(choice.name, choice.name):
        return _toml(choice.name)
    options = ", ".join(f"{name} = {_toml(value)}" for name, value in choice.options)
    return (
        f"{{ name = {_toml(choice.name)}, label = {_toml(choice.label)}, options = {{{options}}} }}"
    )


def _toml(value: Any) -> str:
    return json.dumps(value)  # JSON's texts, numbers, lists and booleans are TOML's


def _choices(value: Any) -> tuple[OptimizerChoice, ...]:
    if not isinstance(value, list) or not value:
        raise StudyError(f"optimizers: expected a list of names or tables, got {value!r}")
    choices = tuple(_choice(item) for item in value)
    labels = [choice.label for choice in choices]
    if twice := sorted({label for label in labels if labels.count(label) > 1}):
        raise StudyError(f"optimizers: expected distinct labels, got {', '.join(twice)} twice")
    return choices


def _choice(item: Any) -> OptimizerChoice:
    if isinstance(item, str):
        return OptimizerChoice(item, item)
    _check_keys("optimizers", item, {"name"}, {"label", "options"})
    options = item.get("options", {})
    if not isinstance(options, dict):
        raise StudyError(f"optimizers: expected options as a table, got {options!r}")
    name, label = _texts("optimizers", [item["name"], item.get("label", item["name"])])
    return OptimizerChoice(name, label, tuple(sorted(options.items())))


def _seeds(value: Any) -> tuple[int, ...]:
    seeds = list(range(value)) if type(value) is int else value
    if (
        not isinstance(seeds, list)
        or not seeds
        or any(type(seed) is not int or seed < 0 for seed in seeds)
        or len(set(seeds)) < len(seeds)
    ):
        raise StudyError(f"seeds: expected a count or distinct whole numbers >= 0, got {value!r}")
    return tuple(seeds)


def _texts(key: str, value: Any) -> tuple[str, ...]:
    if (
        not isinstance(value, list)
        or not value
        or any(not isinstance(text, str) or not text for text in value)
    ):
        raise StudyError(f"{key}: expected texts, got {value!r}")
    if key == "problems" and len(set(value)) < len(value):
        raise StudyError(f"problems: expected distinct names, got {', '.join(value)}")
    return tuple(value)


def _check_keys(where: str, table: Any, required: set[str], optional: set[str]) -> None:
    if not isinstance(table, dict):
        raise StudyError(f"{where}: expected a table, got {table!r}")
    if missing := sorted(required - set(table)):
        raise StudyError(f"{where}: expected {', '.join(missing)}, got {sorted(table)}")
    if unknown := sorted(set(table) - required - optional):
        raise StudyError(
            f"{where}: expected keys among {', '.join(sorted(required | optional))}, got {unknown}"
        )
