"""The schema of a table: what every column means, as on the BoLT data-set cards."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from types import SimpleNamespace
from typing import TYPE_CHECKING, Literal

from parabolt.outcome import Source
from parabolt.space.axis import Axis
from parabolt.space.knobs import KNOBS, Shown

if TYPE_CHECKING:
    from parabolt.instances.specs import Instance
    from parabolt.space.knobs import Knob

Role = Literal["input", "context", "output", "provenance"]
Dtype = Literal["int64", "float64", "bool", "string"]


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        name: Name in the file.
        role: `input` (a searched knob), `context` (constant), `output` (measured) or `provenance`
            (how the figures are known).
        dtype: Type in the Parquet file.
        unit: Unit, or an empty text.
        meaning: In words.
        required: Whether a table must have it.
        nan: What NaN means; None where NaN is not allowed.
        inf: What inf means; None where inf is not allowed.
    """

    name: str
    role: Role
    dtype: Dtype
    unit: str
    meaning: str
    required: bool = True
    nan: str | None = None
    inf: str | None = None


_INFEASIBLE = "the run did not finish"
_UNKNOWN = "the run did not finish, for memory or a crash"

#: Context column of an instance's shape, and what it says. `batch_size` is the card's word.
_SHAPE: dict[str, str] = {
    "num_layers": "transformer layers",
    "num_attention_heads": "attention heads",
    "hidden_size": "hidden size",
    "ffn_hidden_size": "inner size of the feed-forward block",
    "batch_size": "batch size",
    "seq_length": "sequence length in tokens",
}

_OUTPUTS: tuple[Column, ...] = (
    Column("ran_successfully", "output", "bool", "", "ground-truth constraint label"),
    Column(
        "throughput_mean", "output", "float64", "iterations/s", "objective, `NaN` when infeasible",
        nan=_INFEASIBLE,
    ),
    Column(
        "throughput_std", "output", "float64", "iterations/s",
        "spread over the timed steps, `NaN` when infeasible", required=False, nan=_INFEASIBLE,
    ),
    Column(
        "peak_mem_normalised", "output", "float64", "fraction of the capacity",
        "feasibility margin, `< 0` iff feasible", required=False, nan=_UNKNOWN,
    ),
    Column(
        "overall_time", "output", "float64", "s", "wall clock in seconds, `NaN` when infeasible",
        required=False, nan=_INFEASIBLE,
    ),
    Column(
        "all_time_steps", "output", "string", "s", "per-step times, as a string list",
        required=False,
    ),
    Column(
        "peak_mem", "output", "float64", "GiB", "peak GPU memory in GiB, `inf` when infeasible",
        nan=_UNKNOWN, inf="the run ran out of memory",
    ),
    Column(
        "peak_mem_per_gpu", "output", "string", "GiB", "per-GPU peak memory, as a string list",
        required=False,
    ),
    Column(
        "status", "output", "string", "",
        "`ok`, `oom`, or `failed`: did not finish, for memory or a crash", required=False,
    ),
    Column(
        "throughput_repeats", "output", "string", "iterations/s",
        "each run where there were several, as a string list; `nan`: did not finish",
        required=False,
    ),
    Column(
        "peak_mem_repeats", "output", "string", "GiB", "peak memory of the same runs",
        required=False,
    ),
    Column(
        "is_contradictory", "output", "bool", "", "whether some of its runs finished and some not",
        required=False,
    ),
)  # fmt: skip

PROVENANCE: tuple[Column, ...] = tuple(
    Column(f"source_{what}", "provenance", "string", "", f"how {of} is known", required=False)
    for what, of in (
        ("feasible", "`ran_successfully`"),
        ("throughput", "`throughput_mean`"),
        ("memory", "`peak_mem`"),
    )
)

#: Words of a provenance column that stand for a figure that nobody measured.
NOT_MEASURED = {"interpolated": Source.INTERPOLATED, "simulated": Source.SIMULATED}


def table_columns(instance: Instance) -> tuple[Column, ...]:
    """All columns of a table of `instance`: inputs, context, outputs, provenance.

    A knob that the instance fixes is a context column and may be left out.
    """
    searched = {axis.column for axis in instance.encoding.axes}
    inputs = [
        Column(
            axis.column, "input" if axis.column in searched else "context", axis.dtype, "",
            axis.meaning, required=axis.column in searched,
        )
        for axis in _axes(instance)
    ]  # fmt: skip
    context = [
        Column(name, "context", "int64", "", text) for name, text in shape_columns(instance).items()
    ]
    memory_unit = instance.peak_mem_column.unit
    outputs = [
        replace(c, unit=memory_unit, meaning=c.meaning.replace("GiB", memory_unit))
        if c.unit == "GiB" else c
        for c in _OUTPUTS
    ]  # fmt: skip
    return (*inputs, *context, *outputs, *PROVENANCE)


def shape_columns(instance: Instance) -> dict[str, str]:
    """Context column of an instance's shape, to what it says."""
    return {**_SHAPE, **{count.column: count.text for count in _counts(instance)}}


def context_values(instance: Instance) -> dict[str, int | str]:
    """Context columns that a table and a card of `instance` state, and the value of each.

    A knob that is fixed at its neutral value is left out, but for those of version 0.1.
    """
    unsaid = {
        axis.column
        for axis in _axes(instance)
        if axis.values == (axis.knob.neutral,)
        and (axis.knob.shown is Shown.NEVER or not _can_belong(axis.knob, instance))
    }
    return {name: value for name, value in known_context(instance).items() if name not in unsaid}


def _can_belong(knob: Knob, instance: Instance) -> bool:
    """Whether a knob belongs to any configuration of the instance's levels."""
    if knob.belongs is None:
        return True
    levels = dict(instance.levels)
    choices = product(*(levels[name] for name in knob.belongs.knobs))
    decisive = [SimpleNamespace(**dict(zip(knob.belongs.knobs, c, strict=True))) for c in choices]
    return any(knob.belongs.holds(configuration) for configuration in decisive)


def known_context(instance: Instance) -> dict[str, int | str]:
    """The value that each context column, if it is there, must hold in a table of `instance`."""
    model, workload = instance.model, instance.workload
    values = {
        "num_layers": model.n_layers,
        "num_attention_heads": model.n_heads,
        "hidden_size": model.hidden_size,
        "ffn_hidden_size": model.ffn_size,
        "batch_size": workload.batch_size,
        "seq_length": workload.sequence_length,
        **{count.column: count.cell for count in _counts(instance)},
    }
    fixed = {axis.column: axis.cells[0] for axis in _axes(instance) if len(axis.values) == 1}
    return {**values, **fixed}


def meaning_of_absence(instance: Instance) -> dict[str, int | str]:
    """What a table or card means that lacks the column of a fixed knob: its neutral value."""
    return {
        axis.column: Axis(axis.knob, (axis.knob.neutral,)).cells[0]
        for axis in _axes(instance)
        if len(axis.values) == 1 and axis.knob.neutral is not None
    }


@dataclass(frozen=True)
class _Count:
    """A number of GPUs or hosts: a table holds its log2, or itself where that is not whole."""

    name: str
    thing: str
    number: int

    @property
    def has_logarithm(self) -> bool:
        return not self.number & (self.number - 1)

    @property
    def column(self) -> str:
        return f"log2_{self.name}" if self.has_logarithm else self.name

    @property
    def text(self) -> str:
        return f"{'log2 of the ' * self.has_logarithm}number of {self.thing}"

    @property
    def cell(self) -> int:
        return self.number.bit_length() - 1 if self.has_logarithm else self.number


def _counts(instance: Instance) -> tuple[_Count, _Count]:
    cluster = instance.cluster
    return (
        _Count("num_gpus", "GPUs", cluster.n_gpus),
        _Count("num_hosts", "hosts", cluster.n_hosts),
    )


def _axes(instance: Instance) -> list[Axis]:
    return [Axis(KNOBS[name], values) for name, values in instance.levels]
