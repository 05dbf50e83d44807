"""What several frameworks accept alike, as rules with reasons.

A framework's own file puts its rules together; the facts are those of the version that it states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from parabolt.instances.micro_batches import n_micro_batches
from parabolt.space.knobs import KNOBS, Precision
from parabolt.space.rules import Rule, neutral

if TYPE_CHECKING:
    from collections.abc import Iterator

    from parabolt.instances.model_shape import ModelShape
    from parabolt.instances.specs import Workload


def interleaved_micro_batches(workload: Workload) -> Rule:
    """Interleaved stages need a number of micro-batches that the stages divide."""
    return Rule(
        "interleaved_micro_batches",
        ("dp", "pp", "chunks", "grad_accum", "micro_batch"),
        lambda c: (c.chunks == 1) | (n_micro_batches(workload, c) % c.pp == 0),
        lambda c: (
            f"chunks {c.chunks} needs micro-batches that pp {c.pp} divides, and there are "
            f"{n_micro_batches(workload, c)}"
        ),
    )


def whole_sequence(sequence_length: int) -> Rule:
    """A sequence splits over context ranks, two pieces each, and over sequence-parallel ones."""
    return Rule(
        "whole_sequence",
        ("cp", "sp"),
        lambda c: sequence_length % ((1 + (c.cp > 1)) * c.cp * c.sp) == 0,
        lambda c: (
            f"{'2 x ' * (c.cp > 1)}cp {c.cp} x sp {c.sp} does not divide the sequence of "
            f"{sequence_length} tokens"
        ),
    )


def sequence_parallel_in_full() -> Rule:
    """Sequence parallelism is off, or over the whole tensor-parallel group."""
    return Rule(
        "sequence_parallel_in_full",
        ("tp", "sp"),
        lambda c: (c.sp == 1) | (c.sp == c.tp),
        lambda c: f"sp {c.sp} is neither 1 nor tp {c.tp}, which is all that it offers",
    )


def kv_heads_divisible(model: ModelShape) -> Rule:
    """The tp size divides the key-value heads."""
    n_kv_heads = model.n_kv_heads or model.n_heads
    return Rule(
        "kv_heads_divisible",
        ("tp",),
        lambda c: n_kv_heads % c.tp == 0,
        lambda c: f"tp {c.tp} does not divide the {n_kv_heads} key-value heads",
    )


def kv_heads_shared(model: ModelShape) -> Rule:
    """Ranks have whole key-value heads, or several share one."""
    n_kv_heads = model.n_kv_heads or model.n_heads
    return Rule(
        "kv_heads_shared",
        ("tp",),
        lambda c: (n_kv_heads % c.tp == 0) | (c.tp % n_kv_heads == 0),
        lambda c: f"tp {c.tp} and the {n_kv_heads} key-value heads do not divide each other",
    )


def ulysses_heads(model: ModelShape) -> Rule:
    """Ranks that exchange heads have whole ones, queries and key-values alike."""
    n_kv_heads = model.n_kv_heads or model.n_heads
    return Rule(
        "ulysses_heads",
        ("tp", "ulysses"),
        lambda c: (c.ulysses == 1) | (n_kv_heads % (c.tp * c.ulysses) == 0),
        lambda c: (
            f"tp x ulysses = {c.tp} x {c.ulysses} does not divide the {n_kv_heads} key-value heads"
        ),
    )


def two_bytes() -> Rule:
    """Matrix products are in fp16 or bf16."""
    return Rule(
        "two_bytes",
        ("precision",),
        lambda c: c.precision <= Precision.BF16,
        lambda c: f"{KNOBS['precision'].text(c.precision)}: its formats are fp16 and bf16",
    )


def without(reasons: dict[str, str]) -> Iterator[Rule]:
    """Rules that knobs stay neutral, by the name of a knob to why."""
    for name, why in reasons.items():
        yield neutral(KNOBS[name], why)
