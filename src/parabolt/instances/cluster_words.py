"""A cluster in words, as a command line or a file states it."""

from __future__ import annotations

import re

from parabolt.documents import shown
from parabolt.errors import InstanceError
from parabolt.instances.figures import read_figure
from parabolt.instances.hardware import load_gpu
from parabolt.instances.specs import Cluster

_CLUSTER = re.compile(r"(\d{1,18})\s*x\s*(\d{1,18})((?:\s+\S+)+)", re.ASCII)
#: Fields that the words before the figures state.
_STATED_BEFORE = ("n_gpus", "n_hosts", "gpu")
#: Figures that a GPU of one's own must have.
_OWN_GPU = (
    "memory_gib",
    "peak_bf16_tflops",
    "hbm_gb_per_s",
    "intra_host_gb_per_s",
    "inter_host_gb_per_s",
)


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
            f'cluster: expected HOSTSxGPUS and a GPU, got {shown(text)}; try "16x4 h100-96gb"'
        )
    n_hosts, gpus_per_host = int(match[1]), int(match[2])
    if not n_hosts or not gpus_per_host:
        raise InstanceError(f"cluster: expected at least one host and GPU, got {text!r}")
    words = match[3].split()
    figures = dict(
        read_figure(word, Cluster, "cluster", _STATED_BEFORE) for word in words if "=" in word
    )
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
