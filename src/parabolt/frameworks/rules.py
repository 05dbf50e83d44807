"""What several frameworks can't express, as rules with reasons.

The facts are those of each framework's version, which its file states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from parabolt.instances.micro_batches import n_micro_batches
from parabolt.space.rules import Rule

if TYPE_CHECKING:
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


def kv_heads_divisible(n_kv_heads: int) -> Rule:
    """The tp size divides the key-value heads."""
    return Rule(
        "kv_heads_divisible",
        ("tp",),
        lambda c: n_kv_heads % c.tp == 0,
        lambda c: f"tp {c.tp} does not divide the {n_kv_heads} key-value heads",
    )
