"""All frameworks that launch settings are known for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parabolt.frameworks import deepspeed, megatron_lm, nemo, torchtitan

if TYPE_CHECKING:
    from collections.abc import Callable

    from parabolt.frameworks.launch_settings import LaunchSettings
    from parabolt.instances.specs import Instance
    from parabolt.space.configuration import Configuration

FRAMEWORKS: dict[str, Callable[[Instance, Configuration], LaunchSettings]] = {
    "megatron-lm": megatron_lm.launch,
    "torchtitan": torchtitan.launch,
    "deepspeed": deepspeed.launch,
    "nemo": nemo.launch,
}


def launches(instance: Instance, configuration: Configuration) -> tuple[LaunchSettings, ...]:
    """Launch settings of a configuration in every framework."""
    return tuple(launch(instance, configuration) for launch in FRAMEWORKS.values())
