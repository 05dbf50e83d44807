"""What is to be planned, read from the words of a command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parabolt.errors import InstanceError
from parabolt.frameworks.rules import (
    interleaved_micro_batches,
    kv_heads_shared,
    sequence_parallel_in_full,
    whole_sequence,
)
from parabolt.instances.cluster_words import parse_cluster as parse_cluster
from parabolt.instances.micro_batches import whole_micro_batches
from parabolt.instances.specs import Instance
from parabolt.space.rules import Rule

if TYPE_CHECKING:
    from parabolt.instances.model_shape import ModelShape
    from parabolt.instances.specs import Cluster, Workload

_MAX_PP, _MAX_CP = 64, 64
_CHUNKS, _BUCKETS, _ZERO = (1, 2, 4, 8), (64, 128, 256, 512), (0, 2, 3)
#: Bucket of configurations in which it does nothing.
_INERT_BUCKET = 256


def plan_instance(model: ModelShape, cluster: Cluster, workload: Workload) -> Instance:
    """The instance whose lattice is planned over: all knobs at all sizes that can make sense.

    Args:
        model: Model.
        cluster: Cluster; its GPUs, and those of a host, must be powers of two.
        workload: Workload; `micro_batch_size` must be stated.

    Raises:
        InstanceError: If the GPU count isn't a power of two, or no micro-batch size is stated.
    """
    for name, n in (("n_gpus", cluster.n_gpus), ("GPUs per host", cluster.gpus_per_host)):
        if n & (n - 1):
            raise InstanceError(f"{name}: expected a power of two, as every knob has one, got {n}")
    if workload.micro_batch_size is None:
        raise InstanceError("micro_batch_size: expected a number of sequences, got none; try 1")
    n, host = cluster.n_gpus, cluster.gpus_per_link_domain
    levels = {
        "dp": _powers(n),
        "tp": _powers(min(n, host)),
        "pp": _powers(min(n, model.n_layers, _MAX_PP)),
        "cp": _powers(min(n, _MAX_CP)),
        "sp": _powers(min(n, host)),
        "bucket": _BUCKETS,
        "zero": _ZERO,
        "chunks": _CHUNKS,
    }
    return Instance("plan", model, cluster, workload, tuple(levels.items()))


def plan_rules(instance: Instance) -> tuple[Rule, ...]:
    """The rules of an instance, and those that keep a plan free of twins and impossible splits."""
    return (
        *instance.rules,
        whole_micro_batches(instance.workload),
        interleaved_micro_batches(instance.workload),
        whole_sequence(instance.workload.sequence_length),
        kv_heads_shared(instance.model),
        sequence_parallel_in_full(),
        _inert_bucket(),
    )


def _powers(largest: int) -> tuple[int, ...]:
    return tuple(1 << i for i in range(largest.bit_length()))


def _inert_bucket() -> Rule:
    return Rule(
        "inert_bucket",
        ("bucket", "zero"),
        lambda c: (c.zero != 0) | (c.bucket == _INERT_BUCKET),
        lambda c: f"bucket {c.bucket} does nothing with ZeRO 0; {_INERT_BUCKET} stands for all",
        is_definition=True,
    )
