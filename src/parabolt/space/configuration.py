"""A configuration: a raw size for every knob."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from parabolt.errors import InvalidConfigurationError
from parabolt.space.knobs import KNOBS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeGuard

_TOKEN = re.compile(r"([a-z_]+)\s*=?\s*(-?\d+)")


@dataclass(frozen=True, order=True, slots=True, kw_only=True)
class Configuration:
    """A raw size for every knob, hashable and ordered lexicographically.

    Sizes are raw: 16 ranks, 256 MB, ZeRO stage 2. A knob left out takes the size at which it does
    nothing; the bucket has none and must be given.

    Attributes:
        dp: Data-parallel size (ranks).
        tp: Tensor-parallel size (ranks).
        pp: Pipeline-parallel size (stages).
        cp: Context-parallel size (ranks).
        sp: Sequence-parallel size; it reuses the tensor-parallel group.
        bucket: DDP gradient bucket size in MB.
        zero: ZeRO stage, 0, 2 or 3.
        chunks: Model chunks per pipeline stage (interleaving).
        grad_accum: Gradient accumulation steps.

    Raises:
        InvalidConfigurationError: If a size isn't on its knob's scale.
    """

    dp: int = 1
    tp: int = 1
    pp: int = 1
    cp: int = 1
    sp: int = 1
    bucket: int
    zero: int = 0
    chunks: int = 1
    grad_accum: int = 1

    def __post_init__(self) -> None:
        for knob in KNOBS.values():
            size = getattr(self, knob.name)
            if type(size) is not int:
                raise InvalidConfigurationError(
                    f"{knob.name}: expected an int, got {size!r} ({type(size).__name__})"
                )
            knob.encode(size)

    def __str__(self) -> str:
        text = " ".join(f"{f.name}{getattr(self, f.name)}" for f in fields(self)[:-1])
        return text if self.grad_accum == 1 else f"{text} grad_accum{self.grad_accum}"

    def as_dict(self) -> dict[str, int]:
        """Knob name to raw size, in canonical order."""
        return {name: getattr(self, name) for name in KNOBS}

    @classmethod
    def from_dict(cls, sizes: Mapping[str, int]) -> Configuration:
        """The inverse of `as_dict`; knobs may be left out.

        Raises:
            InvalidConfigurationError: For an unknown knob, a missing bucket or a bad size.
        """
        if unknown := sorted(set(sizes) - set(KNOBS)):
            raise InvalidConfigurationError(
                f"expected knobs among {', '.join(KNOBS)}, got {', '.join(unknown)}"
            )
        if "bucket" not in sizes:
            raise InvalidConfigurationError(
                "expected a size for bucket, got none; try bucket=256 (MB)"
            )
        return cls(**sizes)

    @classmethod
    def parse(cls, text: str) -> Configuration:
        """Reads `dp=32 zero=2 bucket=256` as well as the printed form `dp32 zero2 bucket256`.

        Raises:
            InvalidConfigurationError: If the text isn't a list of knobs with sizes.
        """
        sizes: dict[str, int] = {}
        for token in text.replace(",", " ").split():
            match = _TOKEN.fullmatch(token)
            if match is None:
                raise InvalidConfigurationError(
                    f'expected knob=size, got {token!r}; try "dp=32 zero=2 bucket=256"'
                )
            name, size = match.groups()
            if name in sizes:
                raise InvalidConfigurationError(f"expected each knob once, got {name} twice")
            sizes[name] = int(size)
        return cls.from_dict(sizes)


def are_configurations(X: object) -> TypeGuard[Sequence[Configuration]]:
    """Whether `X` is a sequence of configurations, rather than encoded rows."""
    return isinstance(X, Sequence) and all(isinstance(x, Configuration) for x in X)
