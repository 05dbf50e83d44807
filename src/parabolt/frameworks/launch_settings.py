"""Launch settings: what a framework must be told to run a configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Settings(NamedTuple):
    """Settings as the framework takes them, and what they don't say."""

    flags: Sequence[str]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class LaunchSettings:
    """Settings of one framework for one configuration.

    Attributes:
        framework: Name.
        version: Version that the settings are for.
        documentation: Page that documents them.
        flags: Settings as the framework takes them; empty where the configuration breaks a rule.
        rule: Name of the framework's rule that it breaks; empty where it breaks none.
        reason: Why the framework can't express it, in words; empty where it can.
        notes: What the flags don't say, or what differs from what was predicted.
    """

    framework: str
    version: str
    documentation: str
    flags: tuple[str, ...] = ()
    rule: str = ""
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
