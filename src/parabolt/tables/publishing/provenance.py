"""How the rows of a table were measured, as far as anybody has written it down."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from parabolt.documents import read_bytes
from parabolt.errors import TableError
from parabolt.files import write_whole

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Provenance:
    """How a sweep was measured; an empty text where that is not known.

    Attributes:
        gpu: The GPU.
        software: Software and its versions.
        command: The command of a trial, with the knobs as fields in braces.
        date: When it was measured, such as `2026-05-01` or `2026-04-20 to 2026-05-01`.
        notes: Further statements, such as which runs of the source were left out.
    """

    gpu: str = ""
    software: str = ""
    command: str = ""
    date: str = ""
    notes: tuple[str, ...] = ()

    def save(self, sweep: Path) -> None:
        """Writes it beside a sweep's export, where `table build` finds it.

        Raises:
            StoreError: If the file can't be written.
        """
        text = json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"
        write_whole(provenance_path(sweep), text.encode())

    @classmethod
    def load(cls, sweep: Path) -> Provenance:
        """What stands beside a sweep's export; all empty where there is no such file.

        Raises:
            TableError: If the file can't be read, naming the key at fault.
        """
        path = provenance_path(sweep)
        if not path.exists():
            return cls()
        try:
            found = json.loads(read_bytes(path))
        except (OSError, ValueError, RecursionError) as error:
            raise TableError(f"cannot read {path}: {error}") from error
        known = [field.name for field in fields(cls)]
        if not isinstance(found, dict) or not set(found) <= set(known):
            raise TableError(f"{path}: expected an object with keys among {', '.join(known)}")
        given: dict[str, Any] = {n: _checked(path, n, value) for n, value in found.items()}
        return cls(**given)


def provenance_path(sweep: Path) -> Path:
    """The file that belongs to an export: `sweep.provenance.json` beside `sweep.csv`."""
    return sweep.with_suffix(".provenance.json")


def _checked(path: Path, name: str, value: Any) -> str | tuple[str, ...]:
    if name == "notes" and isinstance(value, list) and all(isinstance(v, str) for v in value):
        return tuple(value)
    if name == "notes" or not isinstance(value, str):
        kind = "a list of texts" if name == "notes" else "a text"
        raise TableError(f"{path}, {name}: expected {kind}, got {value!r}")
    return value
