"""How the batch of an iteration is divided: sequences of a micro-batch, and how many there are.

A replica's share of the batch, batch / dp sequences, is worked off in micro-batches. Their size is
what the knob `micro_batch` says; where that is unset, what the workload states; and where that says
nothing either, an iteration has pp x grad_accum micro-batches, as in the published tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from parabolt.space.rules import Rule

if TYPE_CHECKING:
    from parabolt.instances.specs import Workload
    from parabolt.space.configuration import Configuration


def stated_micro_batch(workload: Workload, c: Any) -> Any:
    """Sequences per micro-batch of a configuration, or of columns; 0 where nothing states them."""
    return c.micro_batch + (c.micro_batch == 0) * (workload.micro_batch_size or 0)


def n_micro_batches(workload: Workload, c: Any) -> Any:
    """Micro-batches per iteration of a replica, of one configuration or of columns."""
    size = stated_micro_batch(workload, c)
    of_size = workload.batch_size // (c.dp * (size + (size == 0)))
    return (size > 0) * of_size + (size == 0) * c.pp * c.grad_accum


def micro_batch_size(workload: Workload, c: Any) -> Any:
    """Sequences per micro-batch: batch / (dp x micro-batches) where no size is stated."""
    size = stated_micro_batch(workload, c)
    return size + (size == 0) * (workload.batch_size // (c.dp * c.pp * c.grad_accum))


def whole_micro_batches(workload: Workload) -> Rule:
    """The batch splits evenly over replicas and their micro-batches."""
    batch = workload.batch_size

    def divisor(c: Any) -> Any:
        size = stated_micro_batch(workload, c)
        return size + (size == 0) * c.pp * c.grad_accum

    def reason(c: Configuration) -> str:
        size = stated_micro_batch(workload, c)
        part = f"micro-batch {size}" if size else f"{divisor(c)} micro-batches (pp x grad_accum)"
        return f"dp {c.dp} x {part} does not divide the batch of {batch}"

    return Rule(
        "whole_micro_batches",
        ("dp", "pp", "grad_accum", "micro_batch"),
        lambda c: batch % (c.dp * divisor(c)) == 0,
        reason,
    )
