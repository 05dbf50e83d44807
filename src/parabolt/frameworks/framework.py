"""What is known of a training framework, as one value."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from parabolt.errors import SpecError, UnknownNameError
from parabolt.frameworks.launch_settings import LaunchSettings
from parabolt.space.knobs import KNOBS
from parabolt.space.rules import neutral

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from parabolt.frameworks.launch_settings import Settings
    from parabolt.frameworks.log_format import LogFormat
    from parabolt.instances.specs import Instance
    from parabolt.space.configuration import Configuration
    from parabolt.space.rules import Rule


#: Knobs that the settings of the frameworks speak of, unless a framework says otherwise. A new knob
#: is refused until a framework's file passes it, and never lost.
PASSED = frozenset(
    {"dp", "tp", "pp", "cp", "sp", "bucket", "zero", "chunks", "grad_accum", "micro_batch"}
)


def no_rules(instance: Instance) -> tuple[Rule, ...]:
    """The rules of a framework that accepts everything."""
    del instance
    return ()


def unsaid(instance: Instance) -> str:
    """What of an instance no launch settings here say, in words; empty where they say all."""
    work = instance.workload
    if work.is_frozen:
        return "frozen weights: parabolt passes no adapters on"
    if work.sequences != "full":
        return f"{work.sequences} sequences: parabolt passes only full ones on"
    return ""


@dataclass(frozen=True)
class Framework:
    """A training framework.

    Attributes:
        name: Name in specs and on the command line.
        title: Name as its authors write it.
        version: Version that rules and settings are for, its last word a number; empty where there
            are none.
        documentation: Page that documents them; else the page of the framework.
        log: How its log reads; None if it prints no times.
        rules: Gives what it accepts for an instance, each with its reason: its dialect.
        other_versions: Version to what that one accepts, where it differs.
        settings: Gives its launch settings for a configuration that meets the rules; None where
            parabolt knows none.
        passed: Knobs that its settings speak of.
        dropped: Knobs among them that no setting of it speaks of after all, with the reason.
        unsaid: Gives what of an instance the settings do not say, in words; empty where they say
            all.
        rejections: Regular expressions over one line of a log: the messages by which it, and only
            it, rejects a configuration.
    """

    name: str
    title: str
    version: str
    documentation: str
    log: LogFormat | None = None
    rules: Callable[[Instance], tuple[Rule, ...]] = no_rules
    settings: Callable[[Instance, Configuration], Settings] | None = None
    passed: frozenset[str] = PASSED
    dropped: Mapping[str, str] = field(default_factory=dict)
    unsaid: Callable[[Instance], str] = unsaid
    rejections: tuple[str, ...] = ()
    other_versions: Mapping[str, Callable[[Instance], tuple[Rule, ...]]] = field(
        default_factory=dict
    )

    def at(self, version: str) -> Framework:
        """The framework at another version: its rules; the settings are the same.

        Args:
            version: As `version` or a key of `other_versions`, or the number in it.

        Raises:
            UnknownNameError: If nothing is known of that version.
        """
        rules = {self.version: self.rules, **self.other_versions}
        for known, of_version in rules.items():
            if version in (known, *known.split()):
                return replace(self, version=known, rules=of_version)
        raise UnknownNameError.of(f"version of {self.title}", version, rules)

    def launch(self, instance: Instance, configuration: Configuration) -> LaunchSettings:
        """Launch settings for a configuration, or the reason why there are none.

        Raises:
            SpecError: If no launch settings of the framework are known at all.
        """
        if self.settings is None:
            raise SpecError(f"{self.title}: no launch settings are known")
        about = (self.title, self.version, self.documentation)
        if reason := self.unsaid(instance):
            return LaunchSettings(*about, rule="workload", reason=reason)
        for rule in (*self._not_passed(), *self.rules(instance)):
            if not rule.holds(configuration):
                return LaunchSettings(*about, rule=rule.name, reason=rule.reason(configuration))
        flags, notes = self.settings(instance, configuration)
        return LaunchSettings(*about, flags=tuple(flags), notes=tuple(notes))

    def _not_passed(self) -> Iterator[Rule]:
        """Rules that keep the knobs neutral which it has no setting for."""
        for name, knob in KNOBS.items():
            if name not in self.passed:
                yield neutral(knob, f"{self.title} {self.version} has no setting for it here")
