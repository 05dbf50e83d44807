"""All frameworks that launch settings are known for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parabolt.frameworks import deepspeed, megatron, nemo, torchtitan

if TYPE_CHECKING:
    from collections.abc import Callable

    from parabolt.frameworks.launch import Launch
    from parabolt.instances.specs import Instance
    from parabolt.space.configuration import Configuration

FRAMEWORKS: dict[str, Callable[[Instance, Configuration], Launch]] = {
    "megatron-lm": megatron.launch,
    "torchtitan": torchtitan.launch,
    "deepspeed": deepspeed.launch,
    "nemo": nemo.launch,
}


def launches(instance: Instance, configuration: Configuration) -> tuple[Launch, ...]:
    """Launch settings of a configuration in every framework."""
    return tuple(launch(instance, configuration) for launch in FRAMEWORKS.values())
