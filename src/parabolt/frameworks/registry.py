"""All frameworks that something is known of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parabolt.errors import UnknownNameError
from parabolt.frameworks.composer import COMPOSER
from parabolt.frameworks.deepspeed import DEEPSPEED
from parabolt.frameworks.framework import no_rules
from parabolt.frameworks.fsdp2 import FSDP2
from parabolt.frameworks.gpt_neox import GPT_NEOX
from parabolt.frameworks.litgpt import LITGPT
from parabolt.frameworks.megatron_bridge import MEGATRON_BRIDGE
from parabolt.frameworks.megatron_deepspeed import MEGATRON_DEEPSPEED
from parabolt.frameworks.megatron_lm import MEGATRON_LM
from parabolt.frameworks.nanotron import NANOTRON
from parabolt.frameworks.nemo import NEMO
from parabolt.frameworks.progress_bar import PROGRESS_BAR
from parabolt.frameworks.torchtitan import TORCHTITAN

if TYPE_CHECKING:
    from collections.abc import Callable

    from parabolt.frameworks.framework import Framework
    from parabolt.frameworks.launch_settings import LaunchSettings
    from parabolt.frameworks.log_format import LogFormat
    from parabolt.instances.specs import Instance
    from parabolt.space.configuration import Configuration
    from parabolt.space.rules import Rule

FRAMEWORKS: dict[str, Framework] = {
    "megatron-lm": MEGATRON_LM,
    "torchtitan": TORCHTITAN,
    "deepspeed": DEEPSPEED,
    "nemo": NEMO,
    "megatron-bridge": MEGATRON_BRIDGE,
    "megatron-deepspeed": MEGATRON_DEEPSPEED,
    "gpt-neox": GPT_NEOX,
    "nanotron": NANOTRON,
    "fsdp2": FSDP2,
    "composer": COMPOSER,
    "litgpt": LITGPT,
    "progress-bar": PROGRESS_BAR,
}
#: Other names of frameworks: those of version 0.1, and of programs that build on one.
ALIASES: dict[str, str] = {
    "megatron": "megatron-lm", "llm-foundry": "composer", "tqdm": "progress-bar",
}  # fmt: skip


def log_format(name: str) -> LogFormat:
    """The log format of a framework.

    Raises:
        UnknownNameError: If there is none of that name.
    """
    known = {name: framework.log for name, framework in FRAMEWORKS.items() if framework.log}
    found = known.get(ALIASES.get(name, name))
    if found is None:
        raise UnknownNameError.of("log format", name, ["report", "patterns", *known])
    return found


def launching_framework(name: str) -> Framework:
    """A framework that launch settings are known for, with or without a version.

    Raises:
        UnknownNameError: If there is none of that name.
    """
    known = {key: framework for key, framework in FRAMEWORKS.items() if framework.settings}
    return _at_version("framework", name, known)


def dialect(name: str, *, others: tuple[str, ...] = ()) -> Callable[[Instance], tuple[Rule, ...]]:
    """Gives what a framework accepts of an instance, such as `torchtitan`, `megatron-lm@0.16`.

    Args:
        name: Name of a framework whose rules are known; without a version, that of its settings.
        others: Names of dialects that are no framework's, for the message.

    Raises:
        UnknownNameError: If there is none of that name or version.
    """
    known = {key: f for key, f in FRAMEWORKS.items() if f.rules is not no_rules}
    return _at_version("dialect", name, known, others).rules


def _at_version(
    kind: str, name: str, known: dict[str, Framework], others: tuple[str, ...] = ()
) -> Framework:
    base, _, version = name.partition("@")
    found = known.get(ALIASES.get(base, base))
    if found is None:
        raise UnknownNameError.of(kind, base, (*others, *known))
    return found.at(version) if version else found


def rejections() -> tuple[str, ...]:
    """Regular expressions of all messages by which some framework rejects a configuration."""
    found = (text for framework in FRAMEWORKS.values() for text in framework.rejections)
    return tuple(dict.fromkeys(found))


def launches(instance: Instance, configuration: Configuration) -> tuple[LaunchSettings, ...]:
    """Launch settings of a configuration in every framework that they are known for.

    An instance whose dialect is one of these has its settings alone, at that version.
    """
    base = instance.dialect.partition("@")[0]
    found = FRAMEWORKS.get(ALIASES.get(base, base))
    if found is not None and found.settings:
        return (launching_framework(instance.dialect).launch(instance, configuration),)
    return tuple(
        framework.launch(instance, configuration)
        for framework in FRAMEWORKS.values()
        if framework.settings
    )
