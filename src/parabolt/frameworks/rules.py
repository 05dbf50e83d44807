"""What several frameworks can't express, as rules with reasons; and their micro-batches.

The facts are those of each framework's version, which its file states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from parabolt.space.rules import Rule

if TYPE_CHECKING:
    from typing import Any

    from parabolt.instances.specs import Workload
    from parabolt.space.configuration import Configuration


def n_micro_batches(workload: Workload, c: Any) -> Any:
    """Micro-batches per iteration of a replica, of one configuration or of columns.

    They are batch / (dp x micro-batch size), and pp x grad_accum where no size is stated.
    """
    if workload.micro_batch_size is None:
        return c.pp * c.grad_accum
    return workload.batch_size // (c.dp * workload.micro_batch_size)


def micro_batch_size(workload: Workload, c: Configuration) -> int:
    """Sequences per micro-batch: batch / (dp x micro-batches)."""
    size = workload.micro_batch_size
    return size or workload.batch_size // int(c.dp * n_micro_batches(workload, c))


def whole_micro_batches(workload: Workload) -> Rule:
    """The batch splits evenly over replicas and their micro-batches."""
    batch, size = workload.batch_size, workload.micro_batch_size
    if size is None:
        return Rule(
            "whole_micro_batches",
            ("dp", "pp", "grad_accum"),
            lambda c: batch % (c.dp * c.pp * c.grad_accum) == 0,
            lambda c: (
                f"dp {c.dp} x {c.pp * c.grad_accum} micro-batches (pp x grad_accum) does not "
                f"divide the batch of {batch}"
            ),
        )
    return Rule(
        "whole_micro_batches",
        ("dp",),
        lambda c: batch % (c.dp * size) == 0,
        lambda c: f"dp {c.dp} x micro-batch {size} does not divide the batch of {batch}",
    )


def interleaved_micro_batches(workload: Workload) -> Rule:
    """Interleaved stages need a number of micro-batches that the stages divide."""
    return Rule(
        "interleaved_micro_batches",
        ("dp", "pp", "chunks", "grad_accum"),
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
