"""What a benchmark instance is: a model shape, a cluster and a workload, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING

from parabolt.errors import InstanceError
from parabolt.space import rules
from parabolt.space.encoding import Encoding
from parabolt.space.knobs import KNOBS, ZERO_STAGES

if TYPE_CHECKING:
    from parabolt.space.configuration import Configuration
    from parabolt.space.rules import Rule


@dataclass(frozen=True)
class ModelShape:
    """Shape of a decoder-only transformer.

    Attributes:
        n_layers: Transformer layers.
        n_heads: Attention heads.
        hidden_size: Width of the residual stream.
        ffn_size: Inner width of the feed-forward block.
    """

    n_layers: int
    n_heads: int
    hidden_size: int
    ffn_size: int

    def __post_init__(self) -> None:
        _require_positive_ints(self)


@dataclass(frozen=True)
class Cluster:
    """GPUs, hosts and memory.

    Attributes:
        n_gpus: GPUs in all.
        n_hosts: Hosts, each with the same number of GPUs.
        memory_gb: Memory of one GPU in GB.
    """

    n_gpus: int
    n_hosts: int
    memory_gb: float

    def __post_init__(self) -> None:
        _require_positive_ints(self, "n_gpus", "n_hosts")
        if not _is_number(self.memory_gb) or not 0 < self.memory_gb < float("inf"):
            raise InstanceError(f"memory_gb: expected a positive number, got {self.memory_gb!r}")
        if self.n_gpus % self.n_hosts:
            raise InstanceError(
                f"n_hosts: expected a divisor of the {self.n_gpus} GPUs, got {self.n_hosts}"
            )

    @property
    def gpus_per_host(self) -> int:
        """GPUs in one host."""
        return self.n_gpus // self.n_hosts


@dataclass(frozen=True)
class Workload:
    """What is trained per iteration.

    Attributes:
        sequence_length: Tokens per sequence.
        batch_size: Batch size as the data-set card states it.
    """

    sequence_length: int
    batch_size: int

    def __post_init__(self) -> None:
        _require_positive_ints(self)


@dataclass(frozen=True)
class Instance:
    """A model on a cluster with a workload, and the knobs that are searched.

    Attributes:
        name: Short name.
        model: Model shape.
        cluster: Cluster.
        workload: Workload.
        levels: Per knob, in canonical order, the raw sizes that are searched, ascending. A knob
            with one size is a constant.
        max_virtual_stages: Cap on pp x chunks where chunks > 1; None for no cap.

    Raises:
        InstanceError: If a value cannot be.
    """

    name: str
    model: ModelShape
    cluster: Cluster
    workload: Workload
    levels: tuple[tuple[str, tuple[int, ...]], ...]
    max_virtual_stages: int | None = None

    def __post_init__(self) -> None:
        names = tuple(name for name, _ in self.levels)
        if names != tuple(KNOBS):
            raise InstanceError(
                f"{self.name}: expected levels of the knobs {', '.join(KNOBS)}, got {names}"
            )
        for name, sizes in self.levels:
            _check_levels(self.name, name, sizes)

    @cached_property
    def encoding(self) -> Encoding:
        """The search encoding of this instance's configurations."""
        return Encoding(dict(self.levels))

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """Everything a valid configuration of this instance meets."""
        model, cluster = self.model, self.cluster
        cap = self.max_virtual_stages
        return (
            rules.gpu_count(cluster.n_gpus),
            rules.sequence_parallel(),
            rules.tensor_parallel_in_host(cluster.gpus_per_host),
            rules.tensor_parallel_heads(model.n_heads),
            rules.zero_without_pipeline(),
            rules.chunks_with_pipeline(),
            rules.layers_divisible(model.n_layers),
            *((rules.interleaving_cap(cap),) if cap is not None else ()),
            *(rules.allowed_sizes(name, sizes) for name, sizes in self.levels),
        )

    def check(self, configuration: Configuration) -> None:
        """Raises unless a configuration is valid for this instance.

        Raises:
            InvalidConfigurationError: With the reasons of all rules that are broken.
        """
        rules.check(configuration, self.rules)

    def __getstate__(self) -> dict[str, object]:
        return {f.name: getattr(self, f.name) for f in fields(self)}  # caches are made anew


def _check_levels(instance: str, knob: str, sizes: tuple[int, ...]) -> None:
    on_scale = all(
        type(s) is int and (s in ZERO_STAGES if knob == "zero" else s > 0 and not s & (s - 1))
        for s in sizes
    )
    if not sizes or not on_scale or list(sizes) != sorted(set(sizes)):
        scale = "among 0, 2, 3" if knob == "zero" else "that are powers of two"
        raise InstanceError(
            f"{instance}, levels of {knob}: expected ascending sizes {scale}, got {list(sizes)}"
        )


def _require_positive_ints(value: object, *names: str) -> None:
    for name in names or [f.name for f in fields(value)]:  # type: ignore[arg-type]
        number = getattr(value, name)
        if type(number) is not int or number <= 0:
            raise InstanceError(f"{name}: expected a positive whole number, got {number!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
