"""Plain FSDP2: PyTorch's `fully_shard` in a training loop of one's own. It prints no log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parabolt.frameworks.framework import Framework
from parabolt.frameworks.rules import without
from parabolt.instances.micro_batches import whole_micro_batches
from parabolt.space.rules import Rule

if TYPE_CHECKING:
    from parabolt.instances.specs import Instance

_ELSEWHERE = "is another part of PyTorch, which the training loop would have to bring"


def rules(instance: Instance) -> tuple[Rule, ...]:
    """What `torch.distributed.fsdp.fully_shard` of 2.6 and later does."""
    return (
        whole_micro_batches(instance.workload),
        Rule(
            "shards_gradients",
            ("dp", "zero"),
            lambda c: (c.zero >= 2) | (c.dp == 1),
            lambda c: (
                f"ZeRO {c.zero}: it shards gradients and optimizer states without or with the "
                "weights (reshard_after_forward), which is 2 or 3"
            ),
        ),
        *without(
            {
                "tp": f"tensor parallelism {_ELSEWHERE}",
                "pp": f"pipeline parallelism {_ELSEWHERE}",
                "cp": f"context parallelism {_ELSEWHERE}",
                "ep": f"expert parallelism {_ELSEWHERE}",
            }
        ),
    )


FSDP2 = Framework(
    name="fsdp2",
    title="FSDP2",
    version="PyTorch 2.6",
    documentation="https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html",
    rules=rules,
)
