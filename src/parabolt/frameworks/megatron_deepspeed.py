"""Megatron-DeepSpeed, Microsoft's and BigScience's: Megatron's log beside DeepSpeed's timer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parabolt.frameworks.framework import Framework
from parabolt.frameworks.megatron_lm import LOG, REJECTIONS
from parabolt.frameworks.rules import kv_heads_divisible, two_bytes, without
from parabolt.instances.micro_batches import whole_micro_batches
from parabolt.space.rules import stages_filled, zero_without_pipeline

if TYPE_CHECKING:
    from parabolt.instances.specs import Instance
    from parabolt.space.rules import Rule


def rules(instance: Instance) -> tuple[Rule, ...]:
    """What DeepSpeed's pipeline engine accepts of Megatron's model; it balances uneven stages."""
    return (
        whole_micro_batches(instance.workload),
        kv_heads_divisible(instance.model),
        stages_filled(instance.model.n_layers),
        zero_without_pipeline(),
        two_bytes(),
        *without(
            {
                "cp": "it has no ring attention",
                "sp": "its tensor parallelism has no sequence parallelism",
                "chunks": "DeepSpeed's pipeline has one model chunk per stage",
                "schedule": "DeepSpeed's pipeline runs 1F1B",
                "first_layers": "DeepSpeed balances layers over stages itself",
                "last_layers": "DeepSpeed balances layers over stages itself",
            }
        ),
    )


MEGATRON_DEEPSPEED = Framework(
    name="megatron-deepspeed",
    title="Megatron-DeepSpeed",
    version="2022",
    documentation="https://github.com/deepspeedai/Megatron-DeepSpeed",
    log=LOG,
    rules=rules,
    rejections=REJECTIONS,
)
