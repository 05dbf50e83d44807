"""Dialects: which configurations a published candidate set, or a framework, takes for valid.

A dialect gives the rules of an instance's shape and cluster; the rules of knobs that an instance
lists are the same in all of them. Those of a framework stand in the framework's own file.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from parabolt.space import rules

if TYPE_CHECKING:
    from collections.abc import Callable

    from parabolt.instances.specs import Instance
    from parabolt.space.rules import Rule

BOLT = "bolt"
#: What no framework can do without: for runs as they were measured, whoever ran them.
ANY = "any"
#: What knows the dialects of frameworks. It lies above instances, so it is imported when one is
#: asked for.
_FRAMEWORKS = "parabolt.frameworks.registry:dialect"


def load_dialect(name: str) -> Callable[[Instance], tuple[Rule, ...]]:
    """Gives the rules of an instance: `bolt`, or a framework with or without its version.

    Args:
        name: Such as `bolt`, `torchtitan` or `megatron-lm@0.16`; `any` for what none can do
            without.

    Raises:
        UnknownNameError: If there is no such dialect.
    """
    if name in (BOLT, ANY):
        return bolt if name == BOLT else _of_every_framework
    module, _, function = _FRAMEWORKS.partition(":")
    of_framework = getattr(import_module(module), function)(name, others=(ANY, BOLT))
    return lambda instance: (*_of_every_framework(instance), *of_framework(instance))


def bolt(instance: Instance) -> tuple[Rule, ...]:
    """The candidate sets of the BoLT benchmark (arXiv 2605.17000)."""
    model, cluster = instance.model, instance.cluster
    cap = instance.max_virtual_stages
    return (
        rules.gpu_count(cluster.n_gpus),
        rules.sequence_parallel(),
        rules.tensor_parallel_in_host(
            cluster.gpus_per_link_domain,
            "of a host" if cluster.link_domain_gpus is None else "that fast links join",
        ),
        rules.tensor_parallel_heads(model.n_heads),
        rules.zero_without_pipeline(),
        rules.chunks_with_pipeline(),
        even_stages(instance),
        *((rules.interleaving_cap(cap),) if cap is not None else ()),
    )


def even_stages(instance: Instance) -> Rule:
    """Layers split evenly, or as the knobs of the first and the last stage say where used."""
    levels, n_layers = dict(instance.levels), instance.model.n_layers
    is_even = levels["first_layers"] == levels["last_layers"] == (0,)
    return rules.layers_divisible(n_layers) if is_even else rules.layers_in_stages(n_layers)


def _of_every_framework(instance: Instance) -> tuple[Rule, ...]:
    return (
        rules.gpu_count(instance.cluster.n_gpus),
        rules.sequence_parallel(),
        rules.tensor_parallel_heads(instance.model.n_heads),
        rules.chunks_with_pipeline(),
        rules.zero_with_replicas(),
    )
