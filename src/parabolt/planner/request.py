"""What is to be planned: the candidates of a model on a cluster, with what is said of the knobs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from parabolt.errors import InstanceError
from parabolt.frameworks.rules import (
    interleaved_micro_batches,
    kv_heads_shared,
    sequence_parallel_in_full,
    whole_sequence,
)
from parabolt.instances.cluster_words import parse_cluster as parse_cluster
from parabolt.instances.dialects import BOLT
from parabolt.instances.micro_batches import whole_micro_batches
from parabolt.instances.specs import RECOMPUTATIONS, Instance
from parabolt.planner.searched_values import searched_values
from parabolt.space.knobs import KNOBS
from parabolt.space.rules import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from parabolt.instances.model_shape import ModelShape
    from parabolt.instances.specs import Cluster, Workload

#: Knobs that are searched unless it is said otherwise.
_SEARCHED = ("dp", "tp", "pp", "cp", "sp", "bucket", "zero", "chunks")
#: Bucket of configurations in which it does nothing.
_INERT_BUCKET = 256


def plan_instance(
    model: ModelShape,
    cluster: Cluster,
    workload: Workload,
    *,
    knobs: Mapping[str, tuple[int, ...]] | None = None,
    dialect: str = BOLT,
) -> Instance:
    """The instance whose lattice is planned over.

    Args:
        model: Model.
        cluster: Cluster.
        workload: Workload; what a knob of `knobs` states is taken from there.
        knobs: Knob to the values that are searched, one for a fixed knob; empty for all values that
            can make sense. Where it is left out, dp, tp, pp, cp, sp, bucket, zero and chunks are
            searched, and the others have the workload's value or are neutral. A zero that is
            listed shards nothing at 0, unless the workload says otherwise.
        dialect: Whose rules the configurations meet; see `load_dialect`.

    Raises:
        InstanceError: If a value cannot be, or no micro-batch size is stated.
    """
    stated: dict[str, tuple[int, ...]] = {**dict.fromkeys(_SEARCHED, ()), **(knobs or {})}
    if workload.micro_batch_size is None and not stated.keys() & {"micro_batch", "grad_accum"}:
        raise InstanceError("micro_batch_size: expected a number of sequences, got none; try 1")
    if 0 in stated["zero"] and 1 not in stated["zero"] and workload.is_optimizer_sharded is None:
        workload = replace(workload, is_optimizer_sharded=False)
    levels = {
        name: values or searched_values(name, model, cluster, workload)
        for name, values in stated.items()
    }
    return _instance("plan", model, cluster, workload, levels, dialect)


def replanned(instance: Instance, knobs: Mapping[str, tuple[int, ...]]) -> Instance:
    """An instance with other values of some knobs; see `plan_instance`."""
    model, cluster, workload = instance.model, instance.cluster, instance.workload
    changed = {
        name: values or searched_values(name, model, cluster, workload)
        for name, values in knobs.items()
    }
    levels = {name: v for name, v in instance.levels if v != (KNOBS[name].neutral,)} | changed
    made = _instance(instance.name, model, cluster, workload, levels, instance.dialect)
    return replace(made, max_virtual_stages=instance.max_virtual_stages, peak_mem=instance.peak_mem)


def plan_rules(instance: Instance) -> tuple[Rule, ...]:
    """The rules of an instance, and those that keep a plan free of twins and impossible splits.

    A framework's own rules say what it can split; BoLT's do not.
    """
    splits = (
        whole_micro_batches(instance.workload),
        interleaved_micro_batches(instance.workload),
        whole_sequence(instance.workload.sequence_length),
        kv_heads_shared(instance.model),
        sequence_parallel_in_full(),
    )
    found = (
        *instance.rules,
        *(splits if instance.dialect == BOLT else splits[:1]),
        *_inert_bucket(dict(instance.levels)["bucket"]),
    )
    return tuple({rule.name: rule for rule in found}.values())


def _instance(
    name: str,
    model: ModelShape,
    cluster: Cluster,
    workload: Workload,
    levels: dict[str, tuple[int, ...]],
    dialect: str,
) -> Instance:
    """What workload and knobs both can say is said once: by the knob where several are searched."""
    if "micro_batch" in levels:
        size = levels["micro_batch"]
        workload = replace(workload, micro_batch_size=size[0] if len(size) == 1 else None)
        if len(size) == 1:
            del levels["micro_batch"]
    if "recompute" in levels:
        words = [KNOBS["recompute"].scale.word(value) for value in levels["recompute"]]
        is_stated = len(words) == 1 and words[0] in RECOMPUTATIONS
        workload = replace(workload, recomputation=words[0] if is_stated else "none")
        if is_stated and levels.get("recompute_layers", (0,)) == (0,):
            del levels["recompute"]
        else:
            workload = replace(workload, recomputation="none")
    return Instance(name, model, cluster, workload, tuple(levels.items()), dialect=dialect)


def _inert_bucket(buckets: tuple[int, ...]) -> tuple[Rule, ...]:
    if len(buckets) == 1:
        return ()
    stands = _INERT_BUCKET if _INERT_BUCKET in buckets else buckets[0]
    return (
        Rule(
            "inert_bucket",
            ("bucket", "zero"),
            lambda c: (c.zero != 0) | (c.bucket == stands),
            lambda c: f"bucket {c.bucket} does nothing with ZeRO 0; {stands} stands for all",
            is_definition=True,
        ),
    )
