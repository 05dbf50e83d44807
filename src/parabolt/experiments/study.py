"""A study: problems x optimizers x seeds under one protocol, described by a TOML file.

problems = ["pco32", "uscale", "simulated:pco16?seed=3", "mine.parquet"]    # uscale is a suite
optimizers = ["random", { name = "tpe", label = "tpe-20", options = { n_initial = 20 } }]
seeds = 10                      # 0 to 9; or a list of seeds
executor = "local"

[protocol]                      # what differs from the published protocol, if anything
n_evaluations = 30
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from parabolt.documents import check_keys, checked_text, parse_toml, shown
from parabolt.errors import OptionError, ParaboltError, StudyError
from parabolt.experiments.code_hash import code_hash
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.run_key import RUN_OPTIONS, RunKey
from parabolt.optimizers.adapters import describe, optimizer_factory
from parabolt.optimizers.optimizer import Optimizer
from parabolt.optimizers.registry import find_optimizer, is_import_path
from parabolt.problems.suites import problems_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from parabolt.problems.problem import Problem

#: More seeds than this are a slip of the pen.
MAX_SEEDS = 1_000_000


@dataclass(frozen=True)
class OptimizerChoice:
    """An optimizer of a study.

    Attributes:
        name: Name in the registry, or `module:attribute`.
        label: Unique in the study; shown everywhere.
        options: Options as sorted pairs.
        source: What it is made of where no name leads to it, such as a class of a notebook; see
            `optimizer_factory`.
    """

    name: str
    label: str
    options: tuple[tuple[str, Any], ...] = ()
    source: object | None = field(default=None, compare=False)

    @classmethod
    def of(cls, optimizer: str | object, label: str = "") -> OptimizerChoice:
        """The choice of an optimizer by name, or of anything that `optimizer_factory` takes."""
        if isinstance(optimizer, OptimizerChoice):
            return optimizer
        if isinstance(optimizer, str):
            return cls(optimizer, label or optimizer)
        optimizer_factory(optimizer)  # raises where it is none
        options: tuple[tuple[str, Any], ...] = ()
        if isinstance(optimizer, Optimizer):
            options, optimizer = tuple(sorted(optimizer.given_options.items())), type(optimizer)
        name = describe(optimizer)
        label = label or name.rpartition(":")[2]
        return cls(name, label, options, None if _is_importable(name, optimizer) else optimizer)

    def code(self) -> str:
        """Hash of its code; empty for optimizers of this package."""
        if self.source is not None:
            return code_hash(self.source)
        return code_hash(find_optimizer(self.name)) if is_import_path(self.name) else ""


@dataclass(frozen=True)
class Study:
    """What to run.

    Attributes:
        problems: Problems by name, path or address, see `load_problem`.
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
        """Every run, by problem, optimizer and seed.

        Raises:
            UnknownNameError: For an optimizer that isn't known.
            OptionError: For one that can't be imported, or an option that can't be.
        """
        codes = {choice.label: choice.code() for choice in self.optimizers}
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
                    code=codes[choice.label],
                ),
            )
            for problem in problems
            for choice in self.optimizers
            for seed in self.seeds
        ]

    def as_json(self) -> dict[str, Any]:
        """The study as plain values; the inverse of `study_of`."""
        return {
            "problems": list(self.problems),
            "optimizers": [
                {"name": c.name, "label": c.label, "options": dict(c.options)}
                for c in self.optimizers
            ],
            "seeds": list(self.seeds),
            "protocol": dict(self.protocol),
            "executor": self.executor,
        }


def read_study(path: Path) -> Study:
    """The study that a TOML file describes.

    Raises:
        StudyError: If the file can't be read, naming the key at fault.
        OptionError: For a protocol that cannot be.
    """
    try:
        return parse_study(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"cannot read study file {path}: {error}") from error
    except (StudyError, OptionError) as error:
        raise type(error)(f"{path}: {error}") from error


def parse_study(text: str) -> Study:
    """The study that a TOML text describes; see `read_study`."""
    return study_of(parse_toml(text, StudyError))


def study_of(document: Any) -> Study:
    """The study that plain values describe, as a TOML file or `Study.as_json` gives them.

    Raises:
        StudyError: Naming the key at fault.
        OptionError: For a protocol that cannot be.
    """
    required, known = ("problems", "optimizers"), ("seeds", "protocol", "executor")
    check_keys("study", document, required=required, known=known, error=StudyError)
    protocol = document.get("protocol", {})
    names = [field.name for field in fields(Protocol)]
    check_keys("[protocol]", protocol, known=names, error=StudyError)
    study = Study(
        problems=problems_of(_texts("problems", document["problems"])),
        optimizers=_choices(document["optimizers"]),
        seeds=seeds_of(document.get("seeds", 10)),
        protocol=tuple(sorted(protocol.items())),
        executor=_text("executor", document.get("executor", "local")),
    )
    for problem in study.problems:
        study.protocol_of(problem)
    return study


def seeds_of(value: Any) -> tuple[int, ...]:
    """Seeds from a count or a list.

    Raises:
        StudyError: If it is neither, or too many.
    """
    is_count = type(value) is int and value <= MAX_SEEDS
    seeds = list(range(value)) if is_count else value
    if (
        not isinstance(seeds, (list, tuple))
        or not 0 < len(seeds) <= MAX_SEEDS
        or any(type(seed) is not int or not 0 <= seed < 2**32 for seed in seeds)
        or len(set(seeds)) < len(seeds)
    ):
        raise StudyError(
            f"seeds: expected a count up to {MAX_SEEDS} or distinct whole numbers from 0 to "
            f"{2**32 - 1}, got {shown(value)}"
        )
    return tuple(seeds)


def check_labels(choices: Sequence[OptimizerChoice]) -> None:
    """Raises StudyError unless the labels are distinct, and texts that files can hold."""
    labels = [choice.label for choice in choices]
    if halves := [label for label in labels if label.encode(errors="ignore").decode() != label]:
        raise StudyError(f"optimizers: expected labels of whole characters, got {halves[0]!r}")
    if twice := sorted({label for label in labels if labels.count(label) > 1}):
        raise StudyError(f"optimizers: expected distinct labels, got {', '.join(twice)} twice")


def _choices(value: Any) -> tuple[OptimizerChoice, ...]:
    if not isinstance(value, list) or not value:
        raise StudyError(f"optimizers: expected a list of names or tables, got {shown(value)}")
    choices = tuple(_choice(item) for item in value)
    check_labels(choices)
    return choices


def _choice(item: Any) -> OptimizerChoice:
    if isinstance(item, str):
        name = _text("optimizers", item)
        return OptimizerChoice(name, name)
    optional = ("label", "options")
    check_keys("optimizers", item, required=("name",), known=optional, error=StudyError)
    name = _text("optimizers", item["name"])
    label = _text("optimizers", item.get("label", name))
    return OptimizerChoice(name, label, _options(label, item.get("options", {})))


def _options(label: str, options: Any) -> tuple[tuple[str, Any], ...]:
    if not isinstance(options, dict):
        raise StudyError(f"optimizers: expected options as a table, got {shown(options)}")
    if wrong := sorted(set(options) & set(RUN_OPTIONS)):
        raise StudyError(
            f"optimizers: {label}: expected no option {', '.join(wrong)}, which belongs to the "
            "run; try seeds or [protocol]"
        )
    return tuple(sorted(options.items()))


def _is_importable(name: str, optimizer: object) -> bool:
    """Whether other processes find an optimizer by its name."""
    if name.startswith("__main__:"):
        return False
    try:
        return find_optimizer(name) is optimizer
    except ParaboltError:
        return False


def _text(key: str, value: Any) -> str:
    return checked_text(key, value, StudyError)


def _texts(key: str, value: Any) -> tuple[str, ...]:
    if (
        not isinstance(value, list)
        or not value
        or any(not isinstance(text, str) or not text.strip() for text in value)
    ):
        raise StudyError(f"{key}: expected texts, got {shown(value)}")
    if key == "problems" and len(set(value)) < len(value):
        raise StudyError(f"problems: expected distinct names, got {', '.join(value)}")
    return tuple(value)
