"""The knobs of a parallelism configuration: one dimension each, in canonical order.

`Knobs` is the list of all knobs. One line of it is all that is known of a knob: its name, words,
scale, column, neutral value and where it belongs. Everything else is derived from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

from parabolt.errors import InvalidConfigurationError
from parabolt.space.scales import Choice, Integers, Log2, Ordinal, Scale

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

#: Stands for a knob without a neutral value.
_NONE: Any = object()


class Shown(Enum):
    """Where the neutral value of a knob is written; any other value is written everywhere."""

    ALWAYS = "in texts and files"
    IN_FILES = "in files, as version 0.1 did"
    NEVER = "nowhere: a knob that is missing is neutral"


_ALWAYS = Shown.ALWAYS


class Recompute(IntEnum):
    """What is computed again in the backward pass instead of being stored."""

    NONE = 0
    SELECTIVE = 1
    LAYER = 2
    CHUNK = 3


class Precision(IntEnum):
    """Number format of the matrix products, narrower ones later. Files hold the words."""

    FP16 = 0
    BF16 = 1
    FP8 = 2
    MXFP8 = 3
    NVFP4 = 4


class Offload(IntEnum):
    """What is kept in the host's memory: nothing, optimizer states, also activations."""

    NONE = 0
    OPTIMIZER = 1
    ACTIVATIONS = 2


class Switch(IntEnum):
    """Off or on."""

    OFF = 0
    ON = 1


class Schedule(IntEnum):
    """Pipeline schedules. One forward, one backward is interleaved where chunks > 1."""

    _1F1B = 0
    ZERO_BUBBLE = 1


@dataclass(frozen=True)
class Belongs:
    """Which configurations a knob belongs to; in the others it is neutral.

    Attributes:
        knobs: The knobs that decide.
        holds: Whether the knob belongs to a configuration: a bool, or (n,) bool for columns.
        words: Where it belongs, in words.
    """

    knobs: tuple[str, ...]
    holds: Callable[[Any], Any]
    words: str


@dataclass(frozen=True)
class Knob:
    """One dimension of a configuration.

    Attributes:
        name: Field of `Configuration`, and word on the command line.
        meaning: What the knob sets, in words.
        scale: The values that it can take.
        column: Column of a table; `log2_*` holds the logarithm.
        neutral: The value at which the knob does nothing, and which a file that lacks the knob
            means; None where there is no such value.
        shown: Where the neutral value is written.
        belongs: Which configurations it belongs to; None for all.
    """

    name: str
    meaning: str
    scale: Scale
    column: str
    neutral: int | None
    shown: Shown
    belongs: Belongs | None

    def check(self, value: object) -> int:
        """The value, if it is on the knob's scale; a word becomes the value that it names.

        Raises:
            InvalidConfigurationError: If it isn't.
        """
        if self.is_named and isinstance(value, str):
            return self.parse(value)
        if type(value) is not int and not (self.is_named and isinstance(value, int)):
            kind = self.scale.words if self.is_named else "an int"
            raise InvalidConfigurationError(
                f"{self.name}: expected {kind}, got {value!r} ({type(value).__name__})"
            )
        if not self.scale.allows(value):
            raise InvalidConfigurationError(
                f"{self.name}: expected {self.scale.words}, got {self.scale.word(value)}"
            )
        return self.scale.member(value)

    @property
    def is_named(self) -> bool:
        """Whether the values have names."""
        return getattr(self.scale, "names", None) is not None

    def parse(self, text: str) -> int:
        """The value that a text states.

        Raises:
            InvalidConfigurationError: If it states none.
        """
        try:
            return self.scale.parse(text)
        except InvalidConfigurationError as error:
            raise InvalidConfigurationError(f"{self.name}: {error}") from error

    def text(self, value: int) -> str:
        """Name and value, as a configuration prints them: `dp4`, `recompute=layer`."""
        return f"{self.name}{'=' if self.is_named else ''}{self.plain(value)}"

    def plain(self, value: int) -> int | str:
        """A value as files hold it: its word where the values have names, else the number."""
        return self.scale.word(value) if self.is_named else int(value)


def knob(
    meaning: str,
    scale: Scale,
    column: str,
    *,
    default: int = _NONE,
    shown: Shown = Shown.NEVER,
    belongs: Belongs | None = None,
) -> Any:
    """A field of `Knobs`; see `Knob`. The default is the neutral value, and None without one."""
    neutral = None if default is _NONE else default
    about = (meaning, scale, column, neutral, shown, belongs)
    if neutral is None:
        return field(metadata={"knob": about})
    return field(default=neutral, metadata={"knob": about})


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(knob,))
def _knobs(cls: type[T]) -> type[T]:
    """A data class that is frozen, ordered, slotted, and takes its fields by name."""
    return dataclass(frozen=True, order=True, slots=True, kw_only=True)(cls)


@_knobs
class Knobs:
    """All knobs in canonical order, by which configurations are ordered lexicographically."""

    dp: int = knob("data-parallel size", Log2(), "log2_dp_size", default=1, shown=_ALWAYS)
    tp: int = knob("tensor-parallel size", Log2(), "log2_tp_size", default=1, shown=_ALWAYS)
    pp: int = knob("pipeline-parallel size", Log2(), "log2_pp_size", default=1, shown=_ALWAYS)
    cp: int = knob("context-parallel size", Log2(), "log2_cp_size", default=1, shown=_ALWAYS)
    sp: int = knob("sequence-parallel size", Log2(), "log2_sp_size", default=1, shown=_ALWAYS)
    bucket: int = knob(
        "DDP gradient bucket size in MB", Log2(), "log2_dp_bucket_size_mb", shown=_ALWAYS
    )
    zero: int = knob("ZeRO stage", Ordinal((0, 1, 2, 3)), "zero_stage", default=0, shown=_ALWAYS)
    chunks: int = knob(
        "number of model chunks", Log2(), "log2_num_model_chunks", default=1, shown=_ALWAYS
    )
    grad_accum: int = knob(
        "gradient accumulation steps", Log2(), "log2_grad_accum_steps", default=1,
        shown=Shown.IN_FILES,
        belongs=Belongs(("micro_batch",), lambda c: c.micro_batch == 0, "micro_batch is unset"),
    )  # fmt: skip
    micro_batch: int = knob(
        "sequences per micro-batch", Log2(unset="as the workload states or grad_accum says"),
        "log2_micro_batch_size", default=0,
    )  # fmt: skip
    recompute: int = knob(
        "what is recomputed in the backward pass", Ordinal.of(Recompute), "recompute",
        default=Recompute.NONE,
    )  # fmt: skip
    recompute_layers: int = knob(
        "layers of a chunk that are recomputed, 0 for all", Integers(), "recompute_num_layers",
        default=0,
        belongs=Belongs(
            ("recompute",), lambda c: c.recompute == Recompute.LAYER, "recompute=layer"
        ),
    )  # fmt: skip
    ep: int = knob("expert-parallel size", Log2(), "log2_ep_size", default=1)
    etp: int = knob(
        "tensor-parallel size of experts", Log2(unset="that of the rest"), "log2_expert_tp_size",
        default=0,
    )  # fmt: skip
    shard: int = knob(
        "ranks that share a shard", Log2(unset="all data-parallel ranks"), "log2_shard_size",
        default=0, belongs=Belongs(("zero",), lambda c: c.zero > 0, "zero is 1, 2 or 3"),
    )  # fmt: skip
    precision: int = knob(
        "number format of the matrix products", Ordinal.of(Precision), "precision",
        default=Precision.BF16,
    )  # fmt: skip
    offload: int = knob(
        "what is kept in the host's memory", Ordinal.of(Offload), "offload", default=Offload.NONE
    )
    overlap_tp: int = knob(
        "overlap of tensor-parallel communication", Ordinal.of(Switch), "overlap_tp",
        default=Switch.OFF, belongs=Belongs(("tp",), lambda c: c.tp > 1, "tp > 1"),
    )  # fmt: skip
    overlap_grad: int = knob(
        "overlap of gradient reduction", Ordinal.of(Switch), "overlap_grad", default=Switch.ON
    )
    schedule: int = knob(
        "pipeline schedule", Choice.of(Schedule), "schedule", default=Schedule._1F1B,
        belongs=Belongs(("pp",), lambda c: c.pp > 1, "pp > 1"),
    )  # fmt: skip
    ulysses: int = knob(
        "context-parallel ranks that exchange heads (Ulysses); the others form a ring", Log2(),
        "log2_ulysses_size", default=1,
        belongs=Belongs(("cp",), lambda c: c.cp > 1, "cp > 1"),
    )  # fmt: skip
    first_layers: int = knob(
        "layers of the first pipeline stage, 0 for an even share", Integers(), "first_stage_layers",
        default=0, belongs=Belongs(("pp",), lambda c: c.pp > 1, "pp > 1"),
    )  # fmt: skip
    last_layers: int = knob(
        "layers of the last pipeline stage, 0 for an even share", Integers(), "last_stage_layers",
        default=0, belongs=Belongs(("pp",), lambda c: c.pp > 1, "pp > 1"),
    )  # fmt: skip

    def __post_init__(self) -> None:
        for name, knob in KNOBS.items():
            value = getattr(self, name)
            if value is not knob.neutral and (checked := knob.check(value)) is not value:
                object.__setattr__(self, name, checked)


#: All knobs by name, in canonical order.
KNOBS: dict[str, Knob] = {f.name: Knob(f.name, *f.metadata["knob"]) for f in fields(Knobs)}
