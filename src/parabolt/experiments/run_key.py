"""What makes a run what it is: two runs with the same key have the same evaluations."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import parabolt
from parabolt.errors import OptionError
from parabolt.experiments.code_hash import code_hash
from parabolt.experiments.protocol import Protocol
from parabolt.optimizers.registry import find_optimizer, is_import_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from parabolt.problems.problem import Problem

#: Options that belong to the run and not to its optimizer.
RUN_OPTIONS = ("seed", "rng", "repeats")


@dataclass(frozen=True)
class RunKey:
    """The content of a run, and the label that it goes by.

    Attributes:
        problem: Name of the problem.
        optimizer: Label of the optimizer, unique in a study; its name where nothing else is said.
        seed: Seed of design, noise and optimizer.
        protocol: The protocol.
        data_version: Version of the problem's data as its publisher states it; for people, no part
            of the identity.
        content_hash: SHA-256 of the problem's data, or of what a simulated machine is drawn from.
        method: Name of the optimizer in the registry; the label where it is empty.
        options: Options of the optimizer as sorted pairs of plain values.
        code: SHA-256 of the code of an optimizer from elsewhere, see `code_hash`; empty for those
            of this package, whose code its version states.
        parabolt: Version of this package.
        history_hash: SHA-256 of the tables that the protocol's split gives, see `past_trials`;
            empty without a split, and then no part of the identity.
    """

    problem: str
    optimizer: str
    seed: int
    protocol: Protocol
    data_version: str = field(compare=False)
    content_hash: str
    method: str = ""
    options: tuple[tuple[str, Any], ...] = ()
    code: str = ""
    parabolt: str = parabolt.__version__
    history_hash: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "method", self.method or self.optimizer)
        object.__setattr__(self, "options", _plain_options(self.options))

    @classmethod
    def of(
        cls,
        problem: Problem,
        optimizer: str,
        seed: int,
        protocol: Protocol,
        *,
        method: str = "",
        options: Mapping[str, Any] | None = None,
        code: str | None = None,
    ) -> RunKey:
        """The key of a run on `problem`; `code` is looked up where it isn't given."""
        method = method or optimizer
        from parabolt.experiments.transfer import past_trials  # the cost model

        if code is None:
            code = code_hash(find_optimizer(method)) if is_import_path(method) else ""
        return cls(
            problem=problem.name,
            optimizer=optimizer,
            seed=seed,
            protocol=protocol,
            data_version=problem.version,
            content_hash=problem.content_hash,
            method=method,
            options=tuple(sorted((options or {}).items())),
            code=code,
            history_hash=past_trials(problem.instance, protocol).content_hash,
        )

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the identity: the same in every process and on every machine."""
        return sha256(json.dumps(self.identity(), sort_keys=True).encode()).hexdigest()

    def identity(self) -> dict[str, Any]:
        """The content and the label as plain values."""
        found = asdict(self)
        del found["data_version"]
        if not self.history_hash:
            del found["history_hash"]
        return {**found, "protocol": self.protocol.identity()}

    def as_json(self) -> dict[str, Any]:
        """Every field as plain values; the inverse of `from_json`."""
        return asdict(self)

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> RunKey:
        """The key that `as_json` gave, or that a file of version 0.1 holds.

        Raises:
            KeyError, TypeError, ValueError: If it is none.
        """
        for name in ("problem", "optimizer"):
            if not isinstance(found[name], str):
                raise TypeError(f"{name}: expected a text, got {found[name]!r}")
            found[name].encode()  # half of a character is no text
        if type(found["seed"]) is not int or not 0 <= found["seed"] < 2**32:
            raise ValueError(f"seed: expected a whole number below 2^32, got {found['seed']!r}")
        options = tuple((name, value) for name, value in found["options"])
        # Only version 0.1.0 wrote keys without a version.
        rest = {"code": "", "parabolt": "0.1.0", **found}
        return cls(**{**rest, "protocol": Protocol(**found["protocol"]), "options": options})


def _plain_options(options: tuple[tuple[str, Any], ...]) -> tuple[tuple[str, Any], ...]:
    """Options as a file would give them back.

    Raises:
        OptionError: For one that belongs to the run, or that no file can hold.
    """
    for name, value in options:
        if name in RUN_OPTIONS:
            raise OptionError(
                f"options: expected none of {', '.join(RUN_OPTIONS)}, which belong to the run, got "
                f"{name}"
            )
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise OptionError(
                f"options: expected plain values (numbers, texts, lists), got {name} = {value!r}; "
                "try a class or a function that holds it"
            ) from error
    return tuple((name, json.loads(json.dumps(value))) for name, value in options)
