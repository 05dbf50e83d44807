"""All frameworks that something is known of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parabolt.errors import UnknownNameError
from parabolt.frameworks.composer import COMPOSER
from parabolt.frameworks.deepspeed import DEEPSPEED
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
    from parabolt.frameworks.framework import Framework
    from parabolt.frameworks.launch_settings import LaunchSettings
    from parabolt.frameworks.log_format import LogFormat
    from parabolt.instances.specs import Instance
    from parabolt.space.configuration import Configuration

FRAMEWORKS: dict[str, Framework] = {
    "megatron-lm": MEGATRON_LM,
    "torchtitan": TORCHTITAN,
    "deepspeed": DEEPSPEED,
    "nemo": NEMO,
    "megatron-bridge": MEGATRON_BRIDGE,
    "megatron-deepspeed": MEGATRON_DEEPSPEED,
    "gpt-neox": GPT_NEOX,
    "nanotron": NANOTRON,
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
    known = {framework.name: framework.log for framework in FRAMEWORKS.values()}
    found = known.get(ALIASES.get(name, name))
    if found is None:
        raise UnknownNameError.of("log format", name, ["report", "patterns", *known])
    return found


def launching_framework(name: str) -> Framework:
    """A framework that launch settings are known for.

    Raises:
        UnknownNameError: If there is none of that name.
    """
    known = {key: framework for key, framework in FRAMEWORKS.items() if framework.settings}
    found = known.get(ALIASES.get(name, name))
    if found is None:
        raise UnknownNameError.of("framework", name, known)
    return found


def rejections() -> tuple[str, ...]:
    """Regular expressions of all messages by which some framework rejects a configuration."""
    found = (text for framework in FRAMEWORKS.values() for text in framework.rejections)
    return tuple(dict.fromkeys(found))


def launches(instance: Instance, configuration: Configuration) -> tuple[LaunchSettings, ...]:
    """Launch settings of a configuration in every framework that they are known for."""
    return tuple(
        framework.launch(instance, configuration)
        for framework in FRAMEWORKS.values()
        if framework.settings
    )
