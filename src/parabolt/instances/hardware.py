"""The catalogue of GPUs, and the figures of a cluster with what had to be assumed."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from parabolt.errors import UnknownNameError
from parabolt.space.knobs import KNOBS, Precision
from parabolt.space.rules import Rule

if TYPE_CHECKING:
    from parabolt.instances.specs import Cluster

#: Assumed latency of one message in microseconds: through NVLink, and through a network card.
_INTRA_HOST_LATENCY_US, _INTER_HOST_LATENCY_US = 5.0, 20.0


@dataclass(frozen=True)
class Gpu:
    """Vendor figures of a GPU, dense bf16, links per direction.

    Attributes:
        name: Name in the catalogue.
        memory_gib: Memory in GiB, as the driver reports it.
        peak_bf16_tflops: TFLOP/s; of fp16 where there is no bf16.
        hbm_gb_per_s: Memory bandwidth in GB/s.
        intra_host_gb_per_s: Link bandwidth within a host in GB/s.
        inter_host_gb_per_s: Bandwidth of the usual network card per GPU in GB/s.
        source: Where the figures come from.
        host_links: `switch`, or `mesh` where each pair of GPUs has a share of the link bandwidth.
        peak_fp8_tflops: TFLOP/s; None where there are no such units.
        peak_fp4_tflops: TFLOP/s; None where there are no such units.
        link_domain_gpus: GPUs that the fast links join; None for those of a host.
    """

    name: str
    memory_gib: float
    peak_bf16_tflops: float
    hbm_gb_per_s: float
    intra_host_gb_per_s: float
    inter_host_gb_per_s: float
    source: str
    host_links: str = "switch"
    peak_fp8_tflops: float | None = None
    peak_fp4_tflops: float | None = None
    link_domain_gpus: int | None = None


@dataclass(frozen=True)
class Hardware:
    """The figures of a cluster that the cost model computes with; SI units.

    Attributes:
        peak_flop_per_s: Dense bf16 peak of a GPU.
        hbm_byte_per_s: Memory bandwidth of a GPU.
        intra_host_byte_per_s: Link bandwidth of a GPU within its host, one direction.
        inter_host_byte_per_s: Network bandwidth per GPU, one direction.
        intra_host_latency_s: Latency within a host.
        inter_host_latency_s: Latency between hosts.
        is_mesh: Whether a group within a host has only its share of the link bandwidth.
        assumptions: What the cluster doesn't state, in words.
    """

    peak_flop_per_s: float
    hbm_byte_per_s: float
    intra_host_byte_per_s: float
    inter_host_byte_per_s: float
    intra_host_latency_s: float
    inter_host_latency_s: float
    is_mesh: bool
    assumptions: tuple[str, ...]

    @classmethod
    def of(cls, cluster: Cluster) -> Hardware:
        """The figures of a cluster: its own where it states them, else those of its GPU.

        Raises:
            UnknownNameError: If the catalogue has no such GPU.
        """
        gpu = load_gpu(cluster.gpu) if cluster.gpu else _like(cluster.memory_gib)
        assumptions = []
        if cluster.gpu != gpu.name:
            assumptions.append(f"{cluster.gpu or 'GPU not stated,'} taken for {gpu.name}")
        if cluster.inter_host_gb_per_s is None and cluster.n_hosts > 1:
            assumptions.append(f"network not stated, {gpu.inter_host_gb_per_s:g} GB/s per GPU")
        return cls(
            1e12 * (cluster.peak_bf16_tflops or gpu.peak_bf16_tflops),
            1e9 * (cluster.hbm_gb_per_s or gpu.hbm_gb_per_s),
            1e9 * (cluster.intra_host_gb_per_s or gpu.intra_host_gb_per_s),
            1e9 * (cluster.inter_host_gb_per_s or gpu.inter_host_gb_per_s),
            1e-6 * (cluster.intra_host_latency_us or _INTRA_HOST_LATENCY_US),
            1e-6 * (cluster.inter_host_latency_us or _INTER_HOST_LATENCY_US),
            gpu.host_links == "mesh",
            tuple(assumptions),
        )


#: Shorter names, and what they stand for.
ALIASES = {
    "v100": "v100-32gb",
    "a100": "a100-80gb",
    "a800": "a800-80gb",
    "h100": "h100-80gb",
    "h800": "h800-80gb",
    "gh200": "h100-96gb",
}


@cache
def gpus() -> dict[str, Gpu]:
    """All GPUs of the catalogue by name."""
    text = (resources.files("parabolt.instances") / "hardware.toml").read_text(encoding="utf-8")
    return {name: Gpu(name, **figures) for name, figures in tomllib.loads(text).items()}


def load_gpu(name: str) -> Gpu:
    """A GPU by its name, or by one of `ALIASES`.

    Raises:
        UnknownNameError: If the catalogue has no such GPU.
    """
    known = ALIASES.get(name, name)
    if known not in gpus():
        raise UnknownNameError.of("GPU", name, gpus())
    return gpus()[known]


def precision_units(cluster: Cluster) -> Rule:
    """A GPU has units for the number format; one whose peaks are unknown has all of them.

    Formats with a scale per block (`mxfp8`) came with the units for fp4.
    """
    gpu = load_gpu(cluster.gpu) if cluster.gpu else None
    has_fp8 = gpu is None or bool(cluster.peak_fp8_tflops or gpu.peak_fp8_tflops)
    has_fp4 = gpu is None or bool(cluster.peak_fp4_tflops or gpu.peak_fp4_tflops)
    word = KNOBS["precision"].scale.word
    return Rule(
        "precision_units",
        ("precision",),
        lambda c: (
            ((c.precision != Precision.FP8) | has_fp8) & ((c.precision < Precision.MXFP8) | has_fp4)
        ),
        lambda c: f"{cluster.gpu} has no units for {word(c.precision)}",
    )


def _like(memory_gib: float) -> Gpu:
    """The fastest GPU of the H100's generation or before with the nearest memory."""
    known = [gpus()[name] for name in ("a100-40gb", "h100-80gb", "h100-96gb", "h200")]
    return min(known, key=lambda gpu: abs(gpu.memory_gib - memory_gib))
