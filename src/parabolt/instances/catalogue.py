"""The built-in instances, and instances read from a TOML file."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from parabolt.documents import check_keys, checked_text, parse_toml, read_text
from parabolt.errors import InstanceError, InvalidConfigurationError, UnknownNameError
from parabolt.instances.cluster_words import parse_cluster
from parabolt.instances.model_shape import MODEL_PARTS, ModelShape
from parabolt.instances.models import load_model
from parabolt.instances.specs import Cluster, Instance, PeakMemColumn, Workload
from parabolt.space.knobs import KNOBS

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_SECTIONS: dict[str, type] = {"model": ModelShape, "cluster": Cluster, "workload": Workload}
#: Sections that may be a text instead of a table.
_IN_WORDS = {"model": load_model, "cluster": parse_cluster}


def instance_names() -> list[str]:
    """Names of the built-in instances, sorted."""
    names = (file.name for file in _folder().iterdir())
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


def instance_text(name: str) -> str:
    """The TOML text of a built-in instance by name, or of a TOML file by path.

    Raises:
        UnknownNameError: If there is no built-in instance of that name.
        InstanceError: If the file can't be read.
    """
    if name.endswith(".toml"):
        return read_text(name, "instance file", InstanceError)
    if name not in instance_names():
        raise UnknownNameError.of("instance", name, instance_names())
    return (_folder() / f"{name}.toml").read_text(encoding="utf-8")


def load_instance(name: str) -> Instance:
    """A built-in instance by name, or one from a TOML file by path.

    Raises:
        UnknownNameError: If there is no built-in instance of that name.
        InstanceError: If the file can't be read or describes an instance that cannot be.
    """
    return _parsed(instance_text(name), name)


@lru_cache(maxsize=256)
def _parsed(text: str, origin: str) -> Instance:
    """The same text gives the same object; a file that has changed gives another."""
    return parse_instance(text, origin=origin)


def parse_instance(text: str, *, origin: str) -> Instance:
    """The instance that a TOML text describes.

    Args:
        text: TOML with `name`, the tables `model`, `cluster`, `workload` and `knobs`, and
            optionally `max_virtual_stages`, `dialect` and the table `peak_mem`. The key `memory_gb`
            of version 0.1 is read as `memory_gib`; its tables state peak memory in "GB" of the same
            size.
        origin: Where the text comes from, for error messages.

    A model may be stated by its name, a cluster in words (`parse_cluster`), and a batch by
    `tokens_per_iteration` alone.

    Raises:
        InstanceError: Naming the section and key at fault.
        UnknownNameError: For a model or a GPU that the catalogue does not have.
    """
    try:
        document = parse_toml(text, InstanceError)
    except InstanceError as error:
        raise InstanceError(f"{origin}: {error}") from error
    return instance_from_document(document, origin=origin)


def instance_from_document(document: Any, *, origin: str) -> Instance:
    """The instance that a document of plain values describes, such as a TOML or JSON file holds.

    Args:
        document: The keys of `parse_instance`.
        origin: Where it comes from, for error messages.

    Raises:
        InstanceError: Naming the section and key at fault.
    """
    optional = ("max_virtual_stages", "peak_mem", "dialect")
    check_keys(
        origin,
        document,
        required=("name", *_SECTIONS, "knobs"),
        known=optional,
        error=InstanceError,
    )
    try:
        document = _from_version_0_1(document)
        sections = {key: _section(document[key], key, of) for key, of in _SECTIONS.items()}
        return Instance(
            name=checked_text("name", document["name"], InstanceError),
            levels=_levels(document["knobs"]),
            max_virtual_stages=document.get("max_virtual_stages"),
            dialect=document.get("dialect", "bolt"),
            peak_mem=_section(document["peak_mem"], "peak_mem", PeakMemColumn)
            if "peak_mem" in document
            else None,
            **sections,
        )
    except InstanceError as error:
        raise InstanceError(f"{origin}: {error}") from error


def instance_document(instance: Instance) -> dict[str, Any]:
    """The document of an instance; the inverse of `instance_from_document`.

    Fields that have their defaults are left out, so that a later version reads it with its own.
    """
    document: dict[str, Any] = stated_fields(instance)
    levels = document.pop("levels")
    neutral = {name: knob.neutral for name, knob in KNOBS.items()}
    document["knobs"] = {
        name: [KNOBS[name].plain(value) for value in values]
        for name, values in levels
        if values != (neutral[name],)
    }
    return document


def stated_fields(value: Any) -> Any:
    """The fields of a data class that differ from their defaults, as plain values."""
    if isinstance(value, type) or not is_dataclass(value):
        return value
    found = {}
    for field in fields(value):
        own = getattr(value, field.name)
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if own != default:
            found[field.name] = stated_fields(own)
    return found


def _folder() -> Traversable:
    return resources.files("parabolt.instances") / "catalogue"


def _section(table: Any, key: str, of: type) -> Any:
    if isinstance(table, str) and key in _IN_WORDS:
        return _IN_WORDS[key](table)
    if of is Workload:
        table = _with_batch_size(table)
    known = fields(of)
    check_keys(
        f"[{key}]",
        table,
        required=[field.name for field in known if field.default is MISSING],
        known=[field.name for field in known],
        error=InstanceError,
    )
    if of is ModelShape:
        parts = {
            part: _section(table[part], f"{key}.{part}", kind)
            for part, kind in MODEL_PARTS.items()
            if part in table
        }
        table = {**table, **parts}
    try:
        return of(**table)
    except InstanceError as error:
        raise InstanceError(f"[{key}] {error}") from error


def _with_batch_size(table: Any) -> Any:
    """A workload with the sequences of its tokens, where it states the tokens alone."""
    if not isinstance(table, dict) or "batch_size" in table:
        return table
    tokens, length = table.get("tokens_per_iteration"), table.get("sequence_length")
    if type(tokens) is not int or type(length) is not int or length < 1:
        return table
    if tokens % length:
        raise InstanceError(
            f"[workload] tokens_per_iteration: expected whole sequences of {length} tokens, got "
            f"{tokens}; try stating batch_size as well"
        )
    return {**table, "batch_size": tokens // length}


def _from_version_0_1(document: dict[str, Any]) -> dict[str, Any]:
    """A document with today's keys: a "GB" of a GPU's memory was a GiB then, by another name."""
    cluster = document["cluster"]
    if not isinstance(cluster, dict) or "memory_gb" not in cluster or "memory_gib" in cluster:
        return document
    cluster = dict(cluster)
    memory_gib = cluster.pop("memory_gb")
    return {
        "peak_mem": {"unit": "GB", "capacity": memory_gib},
        **document,
        "cluster": {**cluster, "memory_gib": memory_gib},
    }


def _levels(table: Any) -> tuple[tuple[str, tuple[int, ...]], ...]:
    required = [name for name, knob in KNOBS.items() if knob.neutral is None]
    check_keys("[knobs]", table, required=required, known=KNOBS, error=InstanceError)
    for name, values in table.items():
        if not isinstance(values, list):
            raise InstanceError(f"[knobs] {name}: expected a list of sizes, got {values!r}")
    return tuple((name, tuple(_value(name, v) for v in values)) for name, values in table.items())


def _value(name: str, stated: Any) -> Any:
    """A value as a configuration holds it; a word stands for the value that it names."""
    knob = KNOBS[name]
    if not (knob.is_named and isinstance(stated, str)):
        return stated
    try:
        return knob.parse(stated)
    except InvalidConfigurationError as error:
        raise InstanceError(f"[knobs] {error}") from error
