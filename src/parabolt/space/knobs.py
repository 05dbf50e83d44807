"""The knobs of a parallelism configuration: one dimension each, in canonical order."""

from __future__ import annotations

from dataclasses import dataclass

from parabolt.errors import InvalidConfigurationError

#: Stages in the order of the search encoding: the ordinal 0, 1, 2 stands for ZeRO stage 0, 2, 3.
ZERO_STAGES: tuple[int, ...] = (0, 2, 3)


@dataclass(frozen=True)
class Knob:
    """One dimension of a configuration.

    Attributes:
        name: Field of `Configuration`, and word on the command line.
        column: Column of a table. `log2_*` columns hold log2 of the size; `zero_stage` holds the
            raw stage.
        meaning: What the knob sets, in words.
        neutral: The size at which the knob does nothing; None where there is no such size.
    """

    name: str
    column: str
    meaning: str
    neutral: int | None = 1

    @property
    def is_log2(self) -> bool:
        """Whether the knob halves and doubles (all but the ZeRO stage)."""
        return self.column.startswith("log2_")

    def encode(self, size: int) -> int:
        """The level of a raw size in the search encoding: log2, or the ordinal of a ZeRO stage.

        Raises:
            InvalidConfigurationError: If the size isn't on the knob's scale.
        """
        if self.is_log2:
            if size < 1 or size & (size - 1):
                raise InvalidConfigurationError(f"{self.name}: expected a power of two, got {size}")
            return size.bit_length() - 1
        if size not in ZERO_STAGES:
            raise InvalidConfigurationError(
                f"{self.name}: expected one of {_join(ZERO_STAGES)}, got {size}"
            )
        return ZERO_STAGES.index(size)

    def decode(self, level: int) -> int:
        """The raw size at a level of the search encoding; the inverse of `encode`."""
        if self.is_log2:
            if not 0 <= level < 63:
                raise InvalidConfigurationError(
                    f"{self.column}: expected a level from 0 to 62, got {level}"
                )
            return 1 << level
        if not 0 <= level < len(ZERO_STAGES):
            raise InvalidConfigurationError(
                f"{self.column}: expected an ordinal from 0 to {len(ZERO_STAGES) - 1}, got {level}"
            )
        return ZERO_STAGES[level]


def _join(sizes: tuple[int, ...]) -> str:
    return ", ".join(map(str, sizes))


#: All knobs in canonical order. Lexicographic order of configurations goes by this.
KNOBS: dict[str, Knob] = {
    knob.name: knob
    for knob in (
        Knob("dp", "log2_dp_size", "data-parallel size"),
        Knob("tp", "log2_tp_size", "tensor-parallel size"),
        Knob("pp", "log2_pp_size", "pipeline-parallel size"),
        Knob("cp", "log2_cp_size", "context-parallel size"),
        Knob("sp", "log2_sp_size", "sequence-parallel size"),
        Knob("bucket", "log2_dp_bucket_size_mb", "DDP gradient bucket size in MB", None),
        Knob("zero", "zero_stage", "ZeRO stage", 0),
        Knob("chunks", "log2_num_model_chunks", "number of model chunks"),
        Knob("grad_accum", "log2_grad_accum_steps", "gradient accumulation steps"),
    )
}
