"""Launch settings: what a framework must be told to run a configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class LaunchSettings:
    """Settings of one framework for one configuration.

    Attributes:
        framework: Name.
        version: Version that the settings are for.
        documentation: Page that documents them.
        flags: Settings as the framework takes them; empty where it can't express the configuration.
        reason: Why it can't, in words; empty where it can.
        notes: What the flags don't say, or what differs from what was predicted.
    """

    framework: str
    version: str
    documentation: str
    flags: tuple[str, ...] = ()
    reason: str = ""
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "framework": self.framework,
            "version": self.version,
            "documentation": self.documentation,
            "is_expressible": not self.reason,
            "flags": list(self.flags),
            "reason": self.reason,
            "notes": list(self.notes),
        }
