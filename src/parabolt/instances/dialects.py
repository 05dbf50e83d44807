"""Dialects: which configurations a framework, or a published candidate set, takes for valid.

A dialect is a function from an instance to the rules of its shape and cluster; the rules of knobs
that an instance lists are the same in all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from parabolt.space import rules

if TYPE_CHECKING:
    from collections.abc import Callable

    from parabolt.instances.specs import Instance
    from parabolt.space.rules import Rule


def _bolt(instance: Instance) -> tuple[Rule, ...]:
    """The candidate sets of the BoLT benchmark (arXiv 2605.17000)."""
    model, cluster, levels = instance.model, instance.cluster, dict(instance.levels)
    cap = instance.max_virtual_stages
    is_even = levels["first_layers"] == levels["last_layers"] == (0,)
    of_layers = rules.layers_divisible if is_even else rules.layers_in_stages
    return (
        rules.gpu_count(cluster.n_gpus),
        rules.sequence_parallel(),
        rules.tensor_parallel_in_host(cluster.gpus_per_host),
        rules.tensor_parallel_heads(model.n_heads),
        rules.zero_without_pipeline(),
        rules.chunks_with_pipeline(),
        of_layers(model.n_layers),
        *((rules.interleaving_cap(cap),) if cap is not None else ()),
    )


def _nanotron(instance: Instance) -> tuple[Rule, ...]:
    """The Ultra-Scale Playbook's sweep: tensor-parallel groups span hosts, stages may be uneven."""
    return (
        rules.gpu_count(instance.cluster.n_gpus),
        rules.sequence_parallel(),
        rules.tensor_parallel_heads(instance.model.n_heads),
        rules.zero_with_replicas(),
    )


#: All dialects by name.
DIALECTS: dict[str, Callable[[Instance], tuple[Rule, ...]]] = {
    "bolt": _bolt,
    "nanotron": _nanotron,
}
