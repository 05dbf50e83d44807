"""What a journal says of its search as a whole, in its first record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from parabolt.errors import JournalError, ParaboltError
from parabolt.instances.catalogue import instance_from_document, instance_names, load_instance

if TYPE_CHECKING:
    from collections.abc import Mapping

    from parabolt.instances.specs import Instance


@dataclass(frozen=True)
class About:
    """What is searched.

    Attributes:
        purpose: `tune` or `sweep`.
        instance: Name of the instance.
        n_gpus: GPUs of each trial.
        memory_gib: Memory capacity of a GPU in GiB; None where it isn't known.
        optimizer: Name of the optimizer.
        command: The command's template.
        document: The instance, see `instance_document`; None in a journal of version 0.1.
    """

    purpose: str = "tune"
    instance: str = "an unknown instance"
    n_gpus: int = 1
    memory_gib: float | None = None
    optimizer: str = ""
    command: tuple[str, ...] = ()
    document: Mapping[str, Any] | None = field(default=None, compare=False)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> About:
        """Reads what `as_record` gives; keys that are absent are unknown.

        Raises:
            TypeError: If a value has another type.
        """
        capacity = record.get("memory_gib", record.get("memory_gb"))  # version 0.1 said GB
        return cls(
            purpose=_checked("purpose", record.get("purpose", cls.purpose), str),
            instance=_checked("instance", record.get("instance", cls.instance), str),
            n_gpus=_checked("n_gpus", record.get("n_gpus", cls.n_gpus), int),
            memory_gib=None if capacity is None else _checked("memory_gib", capacity, int, float),
            optimizer=_checked("optimizer", record.get("optimizer", ""), str),
            command=tuple(_checked("command", record.get("command", []), list)),
            document=record.get("instance_document"),
        )

    def as_record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "purpose": self.purpose,
            "instance": self.instance,
            "instance_document": self.document,
            "n_gpus": self.n_gpus,
            "memory_gib": self.memory_gib,
            "optimizer": self.optimizer,
            "command": list(self.command),
        }

    def load_instance(self) -> Instance:
        """The instance that was searched.

        Raises:
            JournalError: If a journal of version 0.1, which has its name only, is of none of the
                built-in ones.
        """
        try:
            if self.document is not None:
                return instance_from_document(self.document, origin=self.instance)
            if self.instance in instance_names():
                return load_instance(self.instance)
        except ParaboltError as error:
            raise JournalError(f"the instance in the journal: {error}") from error
        raise JournalError(
            f"expected a journal that holds its instance, got one of version 0.1 with the name "
            f"{self.instance!r} only; try the sweep.csv beside it, or a table"
        )


def _checked(key: str, value: Any, *types: type) -> Any:
    if isinstance(value, bool) or not isinstance(value, types):
        raise TypeError(f"{key}: expected {types[0].__name__}, got {value!r}")
    return value
