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
            `llama3-405b n_layers=7`, or stand alone where they state all that a shape needs.

    Raises:
        UnknownNameError: If the catalogue has no such model, or a shape no such figure.
        InstanceError: If the file can't be read or describes no transformer.
    """
    base, *words = name.split() if "=" in name else [name]
    figures = [base, *words] if "=" in base else words
    stated = dict(read_figure(word, ModelShape, "model") for word in figures)
    if "=" not in base:
        return replace(_named(base), **stated)
    missing = [f.name for f in fields(ModelShape) if f.default is MISSING and f.name not in stated]
    if missing:
        raise InstanceError(f"model: expected a name, or {', '.join(missing)}; got {name!r}")
    return ModelShape(**stated)


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
