"""What is known of a training framework, as one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from parabolt.frameworks.launch_settings import LaunchSettings
    from parabolt.frameworks.log_format import LogFormat
    from parabolt.instances.specs import Instance
    from parabolt.space.configuration import Configuration

    LaunchFunction = Callable[[Instance, Configuration], LaunchSettings]


@dataclass(frozen=True)
class Framework:
    """A training framework.

    Attributes:
        name: Name in specs and on the command line.
        title: Name as its authors write it.
        version: Version that the launch settings are for; empty where there are none.
        documentation: Page that documents them; else the page of the framework.
        log: How its log reads; None if it prints no times.
        launch: Gives its launch settings for a configuration; None where parabolt knows none.
        rejections: Regular expressions over one line of a log: the messages by which it, and only
            it, rejects a configuration.
    """

    name: str
    title: str
    version: str
    documentation: str
    log: LogFormat | None = None
    launch: LaunchFunction | None = None
    rejections: tuple[str, ...] = ()
