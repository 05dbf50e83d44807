"""The catalogue of well-known model shapes, and shapes from a Hugging Face `config.json`."""

from __future__ import annotations

import json
import tomllib
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from parabolt.errors import InstanceError, UnknownNameError
from parabolt.instances.specs import ModelShape

#: Field of a shape, and its names in `config.json`: Llama's, then GPT-2's.
_NAMES: dict[str, tuple[str, ...]] = {
    "n_layers": ("num_hidden_layers", "n_layer", "num_layers"),
    "n_heads": ("num_attention_heads", "n_head"),
    "hidden_size": ("hidden_size", "n_embd"),
    "ffn_size": ("intermediate_size", "n_inner", "ffn_dim"),
    "n_kv_heads": ("num_key_value_heads",),
    "head_size": ("head_dim",),
    "vocabulary": ("vocab_size",),
    "is_tied": ("tie_word_embeddings",),
}
#: Families whose feed-forward block has no gate; all other known ones have one.
_PLAIN_MLP = frozenset({"gpt2", "gpt_neox", "gptj", "opt", "bloom", "falcon", "phi", "starcoder2"})
#: Families that tie their embeddings unless the file says otherwise.
_TIED = frozenset({"gpt2", "opt", "bloom", "gemma", "gemma2", "gemma3_text"})
#: Keys that tell a mixture of experts, whose cost the model doesn't describe.
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")


@cache
def _catalogue() -> dict[str, dict[str, Any]]:
    text = (resources.files("parabolt.instances") / "models.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def model_names() -> list[str]:
    """Names of the catalogue, sorted."""
    return sorted(_catalogue())


def load_model(name: str) -> ModelShape:
    """A shape by name of the catalogue, or from a `config.json` by path.

    Raises:
        UnknownNameError: If the catalogue has no such model.
        InstanceError: If the file can't be read or describes no transformer.
    """
    if name.endswith(".json"):
        try:
            return parse_config(Path(name).read_text(encoding="utf-8"), origin=name)
        except (OSError, UnicodeDecodeError) as error:
            raise InstanceError(f"cannot read model file {name}: {error}") from error
    if name not in _catalogue():
        raise UnknownNameError.of("model", name, _catalogue())
    figures = {key: value for key, value in _catalogue()[name].items() if key != "source"}
    return ModelShape(**figures)


def model_source(name: str) -> str:
    """Where the figures of a model of the catalogue come from."""
    return str(_catalogue()[name]["source"])


def parse_config(text: str, *, origin: str) -> ModelShape:
    """The shape that a Hugging Face `config.json` describes.

    Args:
        text: The file. Of a multimodal model, the `text_config` inside counts.
        origin: Where it comes from, for error messages.

    Raises:
        InstanceError: If a size is missing, or the model is a mixture of experts.
    """
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise InstanceError(f"{origin}: expected JSON, got {error}") from error
    if not isinstance(document, dict):
        raise InstanceError(f"{origin}: expected a JSON object, got {type(document).__name__}")
    document = document.get("text_config", document)
    if (experts := next((key for key in _EXPERTS if document.get(key)), None)) is not None:
        raise InstanceError(
            f"{origin}: expected a dense transformer, got a mixture of experts "
            f"({experts} {document[experts]})"
        )
    figures = {
        field: document[key]
        for field, keys in _NAMES.items()
        for key in reversed(keys)
        if document.get(key) is not None
    }
    return _shape(figures, str(document.get("model_type", "")), origin)


def _shape(figures: dict[str, Any], family: str, origin: str) -> ModelShape:
    figures["is_gated"] = family not in _PLAIN_MLP
    figures.setdefault("is_tied", family in _TIED)
    if family == "gpt2" and "hidden_size" in figures:
        figures.setdefault("ffn_size", 4 * figures["hidden_size"])  # what n_inner null stands for
    for field in ("n_layers", "n_heads", "hidden_size", "ffn_size"):
        if field not in figures:
            raise InstanceError(f"{origin}: expected {' or '.join(_NAMES[field])}, got neither")
    try:
        return ModelShape(**figures)
    except InstanceError as error:
        raise InstanceError(f"{origin}: {error}") from error
