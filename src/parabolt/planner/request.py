"""What is to be planned, read from the words of a command line."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from parabolt.errors import InstanceError, UnknownNameError
from parabolt.frameworks.rules import (
    interleaved_micro_batches,
    sequence_parallel_in_full,
    whole_sequence,
)
from parabolt.instances.hardware import load_gpu
from parabolt.instances.micro_batches import whole_micro_batches
from parabolt.instances.specs import Cluster, Instance, Workload
from parabolt.space.rules import Rule

if TYPE_CHECKING:
    from parabolt.instances.model_shape import ModelShape

_CLUSTER = re.compile(r"(\d+)\s*x\s*(\d+)((?:\s+\S+)+)")
#: Figures that a GPU of one's own must have.
_OWN_GPU = (
    "memory_gib",
    "peak_bf16_tflops",
    "hbm_gb_per_s",
    "intra_host_gb_per_s",
    "inter_host_gb_per_s",
)
_MAX_PP, _MAX_CP = 64, 64
_CHUNKS, _BUCKETS, _ZERO = (1, 2, 4, 8), (64, 128, 256, 512), (0, 2, 3)
#: Bucket of configurations in which it does nothing.
_INERT_BUCKET = 256


def parse_cluster(text: str) -> Cluster:
    """The cluster that `HOSTSxGPUS gpu [figure=value ...]` describes, such as `16x4 h100-96gb`.

    Figures are fields of `Cluster` and replace those of the GPU: `2x8 h100 inter_host_gb_per_s=25`.
    A GPU that the catalogue lacks is one whose figures are all stated.

    Raises:
        InstanceError: If the text isn't of that form, or a figure isn't one of a cluster.
        UnknownNameError: If the catalogue has no such GPU.
    """
    match = _CLUSTER.fullmatch(text.strip())
    if match is None:
        raise InstanceError(
            f'cluster: expected HOSTSxGPUS and a GPU, got {text!r}; try "16x4 h100-96gb"'
        )
    n_hosts, gpus_per_host = int(match[1]), int(match[2])
    if not n_hosts or not gpus_per_host:
        raise InstanceError(f"cluster: expected at least one host and GPU, got {text!r}")
    words = match[3].split()
    figures = dict(_figure(word) for word in words if "=" in word)
    names = [word.lower() for word in words if "=" not in word]
    if len(names) > 1:
        raise InstanceError(f"cluster: expected one GPU, got {' and '.join(names)}")
    n_gpus = n_hosts * gpus_per_host
    if names:
        gpu = load_gpu(names[0])
        domain = gpu.link_domain_gpus
        if domain is not None and not domain % gpus_per_host:
            figures.setdefault("link_domain_gpus", min(domain, n_gpus))
        figures.setdefault("memory_gib", gpu.memory_gib)
    elif missing := [name for name in _OWN_GPU if name not in figures]:
        raise InstanceError(f"cluster: expected a GPU, or {', '.join(missing)}; got {text!r}")
    return Cluster(n_gpus, n_hosts, gpu=names[0] if names else None, **figures)


def _figure(word: str) -> tuple[str, Any]:
    name, _, value = word.partition("=")
    known = [f.name for f in fields(Cluster) if f.name not in ("n_gpus", "n_hosts", "gpu")]
    if name not in known:
        raise UnknownNameError.of("figure of a cluster", name, known)
    try:
        return name, int(value) if name == "link_domain_gpus" else float(value)
    except ValueError:
        raise InstanceError(f"{name}: expected a number, got {value!r}") from None


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
        _kv_heads(instance.model),
        sequence_parallel_in_full(),
        _inert_bucket(),
    )


def _powers(largest: int) -> tuple[int, ...]:
    return tuple(1 << i for i in range(largest.bit_length()))


def _kv_heads(model: ModelShape) -> Rule:
    n_heads = model.n_kv_heads or model.n_heads
    return Rule(
        "kv_heads",
        ("tp",),
        lambda c: (n_heads % c.tp == 0) | (c.tp % n_heads == 0),
        lambda c: f"tp {c.tp} and the {n_heads} key-value heads do not divide each other",
    )


def _inert_bucket() -> Rule:
    return Rule(
        "inert_bucket",
        ("bucket", "zero"),
        lambda c: (c.zero != 0) | (c.bucket == _INERT_BUCKET),
        lambda c: f"bucket {c.bucket} does nothing with ZeRO 0; {_INERT_BUCKET} stands for all",
    )
