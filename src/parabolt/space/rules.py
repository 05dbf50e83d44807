"""The validity rules of a configuration, each a named value that says why it rejects.

A rule's arithmetic takes a `Configuration` or `Configurations`, whose attributes are whole columns:
the same line serves one configuration and millions. The rules are those of the BoLT candidate sets
(arXiv 2605.17000).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.errors import InvalidConfigurationError
from parabolt.space.knobs import KNOBS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from parabolt.space.configuration import Configuration
    from parabolt.space.knobs import Knob


@dataclass(frozen=True)
class Rule:
    """A condition that every valid configuration meets.

    Attributes:
        name: Short name, used in reports.
        knobs: The knobs the rule looks at.
        holds: True where the rule is met: a bool for a `Configuration`, (n,) bool for columns.
        reason: Why a configuration that breaks the rule is invalid, in words.
        is_definition: Whether what breaks it is no configuration at all, as one of more GPUs than
            there are, or a second name of another one.
    """

    name: str
    knobs: tuple[str, ...]
    holds: Callable[[Any], Any]
    reason: Callable[[Configuration], str]
    is_definition: bool = False


def gpu_count(n_gpus: int) -> Rule:
    """The sizes dp, tp, pp and cp multiply to the GPU count; sp reuses the tp group."""
    return Rule(
        "gpu_count",
        ("dp", "tp", "pp", "cp"),
        lambda c: c.dp * c.tp * c.pp * c.cp == n_gpus,
        lambda c: (
            f"dp x tp x pp x cp = {c.dp} x {c.tp} x {c.pp} x {c.cp} = "
            f"{c.dp * c.tp * c.pp * c.cp}, expected the {n_gpus} GPUs of the cluster"
        ),
        is_definition=True,
    )


def sequence_parallel() -> Rule:
    """The sp size divides tp, whose group it reuses."""
    return Rule(
        "sequence_parallel",
        ("tp", "sp"),
        lambda c: c.tp % c.sp == 0,
        lambda c: f"sp {c.sp} does not divide tp {c.tp}, whose group it reuses",
        is_definition=True,
    )


def tensor_parallel_in_host(gpus_per_host: int, where: str = "of a host") -> Rule:
    """A tensor-parallel group stays inside one host, or among the GPUs that fast links join."""
    return Rule(
        "tensor_parallel_in_host",
        ("tp",),
        lambda c: c.tp <= gpus_per_host,
        lambda c: f"tp {c.tp} is more than the {gpus_per_host} GPUs {where}",
    )


def tensor_parallel_heads(n_heads: int) -> Rule:
    """The tp size divides the attention heads."""
    return Rule(
        "tensor_parallel_heads",
        ("tp",),
        lambda c: n_heads % c.tp == 0,
        lambda c: f"tp {c.tp} does not divide the {n_heads} attention heads",
    )


def zero_without_pipeline() -> Rule:
    """ZeRO stages 2 and 3 go without pipeline stages."""
    return Rule(
        "zero_without_pipeline",
        ("pp", "zero"),
        lambda c: (c.zero < 2) | (c.pp == 1),
        lambda c: f"ZeRO stage {c.zero} goes only without pipeline stages, and pp is {c.pp}",
    )


def zero_with_replicas() -> Rule:
    """ZeRO shares states among data- and context-parallel ranks, so there are several."""
    return Rule(
        "zero_with_replicas",
        ("dp", "cp", "zero"),
        lambda c: (c.zero == 0) | (c.dp * c.cp > 1),
        lambda c: f"ZeRO stage {c.zero} needs replicas to share with, and dp x cp is 1",
    )


def chunks_with_pipeline() -> Rule:
    """More than one model chunk (interleaving) needs pipeline stages."""
    return Rule(
        "chunks_with_pipeline",
        ("pp", "chunks"),
        lambda c: (c.chunks == 1) | (c.pp > 1),
        lambda c: f"chunks {c.chunks} needs pipeline stages, and pp is 1",
        is_definition=True,
    )


def layers_divisible(n_layers: int) -> Rule:
    """The layers split evenly over pp x chunks."""
    return Rule(
        "layers_divisible",
        ("pp", "chunks"),
        lambda c: n_layers % (c.pp * c.chunks) == 0,
        lambda c: f"{n_layers} layers do not split over {_virtual_stages(c)}",
    )


def _virtual_stages(c: Configuration) -> str:
    return f"{c.pp} stages" if c.chunks == 1 else f"pp x chunks = {c.pp} x {c.chunks}"


def stages_filled(n_layers: int) -> Rule:
    """Layers go unevenly over pp x chunks, and each has at least one."""
    return Rule(
        "stages_filled",
        ("pp", "chunks"),
        lambda c: c.pp * c.chunks <= n_layers,
        lambda c: f"{n_layers} layers are too few for {_virtual_stages(c)}",
    )


def layers_in_stages(n_layers: int) -> Rule:
    """The first and the last stage have the layers they are given, the others equal shares.

    With several chunks the outermost chunk of an end may have fewer layers than the others of that
    stage, as where the embedding and the output projection count as a layer each.
    """

    def fits(layers: Any, c: Any) -> Any:
        return layers >= (c.chunks - 1) * -(-layers // c.chunks)

    def holds(c: Any) -> Any:
        n_middle = c.pp - (c.first_layers > 0) - (c.last_layers > 0)
        rest = n_layers - c.first_layers - c.last_layers
        parts = (n_middle > 0) * n_middle * c.chunks + (n_middle <= 0)
        is_shared = (rest >= 0) & (rest % parts == 0) & ((n_middle > 0) == (rest > 0))
        return is_shared & fits(c.first_layers, c) & fits(c.last_layers, c)

    return Rule(
        "layers_in_stages",
        ("pp", "chunks", "first_layers", "last_layers"),
        holds,
        lambda c: (
            f"{n_layers} layers do not split over {_virtual_stages(c)} with "
            f"{c.first_layers or 'an even share'} in the first stage and "
            f"{c.last_layers or 'an even share'} in the last"
        ),
    )


def experts_divisible(n_experts: int) -> Rule:
    """The experts split over ep ranks."""
    return Rule(
        "experts_divisible",
        ("ep",),
        lambda c: n_experts % c.ep == 0,
        lambda c: f"ep {c.ep} does not divide the {n_experts} experts of a layer",
    )


def expert_ranks() -> Rule:
    """Experts are spread over ranks of one pipeline stage: ep x etp divides dp x cp x tp."""

    def size(c: Any) -> Any:
        return c.ep * (c.etp + (c.etp == 0) * c.tp)

    return Rule(
        "expert_ranks",
        ("ep", "dp", "tp", "cp", "etp"),
        lambda c: c.dp * c.cp * c.tp % size(c) == 0,
        lambda c: (
            f"ep x tensor-parallel size of experts = {size(c)} does not divide dp x cp x tp = "
            f"{c.dp * c.cp * c.tp}"
        ),
    )


def expert_tensor_parallel() -> Rule:
    """Tensor parallelism of experts, where stated, divides tp."""
    return Rule(
        "expert_tensor_parallel",
        ("etp", "tp"),
        lambda c: c.tp % (c.etp + (c.etp == 0)) == 0,
        lambda c: f"etp {c.etp} does not divide tp {c.tp}",
    )


def shards_divisible() -> Rule:
    """The ranks that share a shard, where stated, divide the data-parallel ones."""
    return Rule(
        "shards_divisible",
        ("shard", "dp", "cp"),
        lambda c: c.dp * c.cp % (c.shard + (c.shard == 0)) == 0,
        lambda c: f"shard {c.shard} does not divide dp x cp = {c.dp} x {c.cp}",
    )


def ulysses_in_context() -> Rule:
    """Ranks that exchange heads are a part of the context-parallel group."""
    return Rule(
        "ulysses_in_context",
        ("ulysses", "cp"),
        lambda c: c.cp % c.ulysses == 0,
        lambda c: f"ulysses {c.ulysses} does not divide cp {c.cp}",
    )


def interleaving_cap(max_virtual_stages: int) -> Rule:
    """An instance's own cap on pp x chunks where chunks > 1."""
    return Rule(
        "interleaving_cap",
        ("pp", "chunks"),
        lambda c: (c.chunks == 1) | (c.pp * c.chunks <= max_virtual_stages),
        lambda c: (
            f"pp x chunks = {c.pp} x {c.chunks} is more than the {max_virtual_stages} that this "
            "instance allows where chunks > 1"
        ),
    )


def allowed_sizes(knob: str, sizes: tuple[int, ...]) -> Rule:
    """An instance's own list of sizes of one knob."""
    word = KNOBS[knob].scale.word
    return Rule(
        f"allowed_{knob}",
        (knob,),
        lambda c: np.isin(getattr(c, knob), sizes),
        lambda c: f"{knob} {word(getattr(c, knob))} is not among {', '.join(map(word, sizes))}",
        is_definition=True,
    )


def neutral(knob: Knob, why: str) -> Rule:
    """A knob has its neutral value, as anything else can't be expressed."""
    name, value = knob.name, knob.neutral
    return Rule(
        f"{name}_neutral",
        (name,),
        lambda c: getattr(c, name) == value,
        lambda c: f"{knob.text(getattr(c, name))}: {why}",
    )


def belongs(knob: Knob) -> Rule | None:
    """A knob is neutral in configurations that it does not belong to; None if it belongs to all."""
    where, neutral, name = knob.belongs, knob.neutral, knob.name
    if where is None:
        return None
    return Rule(
        f"{name}_belongs",
        (name, *where.knobs),
        lambda c: (getattr(c, name) == neutral) | where.holds(c),
        lambda c: f"{knob.text(getattr(c, name))} does nothing but where {where.words}",
        is_definition=True,
    )


def check(configuration: Configuration, rules: Iterable[Rule]) -> None:
    """Raises unless a configuration meets every rule.

    Raises:
        InvalidConfigurationError: With the reasons of all rules that are broken.
    """
    broken = [rule for rule in rules if not rule.holds(configuration)]
    if broken:
        reasons = "; ".join(rule.reason(configuration) for rule in broken)
        raise InvalidConfigurationError(f"{configuration} is invalid: {reasons}")
