"""The catalogue of well-known model shapes."""

from __future__ import annotations

import tomllib
from dataclasses import MISSING, fields, replace
from functools import cache
from importlib import resources
from typing import Any

from parabolt.documents import read_text
from parabolt.errors import InstanceError, UnknownNameError
from parabolt.instances.config_json import parse_config
from parabolt.instances.figures import read_figure
from parabolt.instances.model_shape import MODEL_PARTS, ModelShape


@cache
def _catalogue() -> dict[str, dict[str, Any]]:
    text = (resources.files("parabolt.instances") / "models.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def model_names() -> list[str]:
    """Names of the catalogue, sorted."""
    return sorted(_catalogue())


def load_model(name: str) -> ModelShape:
    """A shape by name of the catalogue, or from a `config.json` by path.

    Args:
        name: The name or path. Figures may follow and replace those of the model, as in
            `llama3-405b n_layers=7`, or stand alone where they state all that a shape needs. Those
            of a part are `experts.n_active=4`.

    Raises:
        UnknownNameError: If the catalogue has no such model, or a shape no such figure.
        InstanceError: If the file can't be read or describes no transformer.
    """
    base, *words = name.split() if "=" in name else [name]
    figures = [base, *words] if "=" in base else words
    shape = None if "=" in base else _named(base)
    whole = [word for word in figures if "." not in word.partition("=")[0]]
    stated = dict(read_figure(word, ModelShape, "model") for word in whole)
    stated |= _parts(shape, [word for word in figures if word not in whole])
    if shape is not None:
        return replace(shape, **stated)
    missing = [f.name for f in fields(ModelShape) if f.default is MISSING and f.name not in stated]
    if missing:
        raise InstanceError(f"model: expected a name, or {', '.join(missing)}; got {name!r}")
    return ModelShape(**stated)


def _parts(shape: ModelShape | None, words: list[str]) -> dict[str, Any]:
    """The parts of a shape that `part.figure=value` state, with the other figures as they are."""
    stated: dict[str, dict[str, Any]] = {}
    for word in words:
        part, _, figure = word.partition(".")
        if part not in MODEL_PARTS:
            raise UnknownNameError.of("part of a model", part, MODEL_PARTS)
        name, value = read_figure(figure, MODEL_PARTS[part], part)
        stated.setdefault(part, {})[name] = value
    made = {}
    for part, figures in stated.items():
        kind, own = MODEL_PARTS[part], getattr(shape, part, None)
        missing = [f.name for f in fields(kind) if f.default is MISSING and f.name not in figures]
        if own is None and missing:
            raise InstanceError(f"{part}: expected {', '.join(missing)} as well")
        made[part] = kind(**figures) if own is None else replace(own, **figures)
    return made


def _named(name: str) -> ModelShape:
    if name.endswith(".json"):
        return parse_config(read_text(name, "model file", InstanceError), origin=name)
    if name not in _catalogue():
        raise UnknownNameError.of("model", name, _catalogue())
    figures = {key: value for key, value in _catalogue()[name].items() if key != "source"}
    parts = {part: of(**figures[part]) for part, of in MODEL_PARTS.items() if part in figures}
    return ModelShape(**{**figures, **parts})


def model_source(name: str) -> str:
    """Where the figures of a model of the catalogue come from."""
    return str(_catalogue()[name]["source"])
