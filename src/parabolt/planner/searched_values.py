"""The values of a knob that are searched where nobody lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parabolt.instances.hardware import precision_units
from parabolt.space.configuration import Configuration
from parabolt.space.knobs import KNOBS, Precision

if TYPE_CHECKING:
    from parabolt.instances.model_shape import ModelShape
    from parabolt.instances.specs import Cluster, Workload

_MAX_PP, _MAX_CP, _MAX_CHUNKS, _MAX_MICRO_BATCH = 64, 64, 12, 16
_BUCKETS, _ZERO = (64, 128, 256, 512), (0, 2, 3)
#: How many layers an end of the pipeline has less than an even share.
_LESS = (0, 1, 2)


def searched_values(
    name: str, model: ModelShape, cluster: Cluster, workload: Workload
) -> tuple[int, ...]:
    """All values of a knob that can make sense, ascending."""
    n, joined = cluster.n_gpus, cluster.gpus_per_link_domain
    sizes = {
        "dp": (n, n),
        "tp": (n, min(n, joined)),
        "pp": (n, min(n, model.n_layers, _MAX_PP)),
        "cp": (n, min(n, _MAX_CP)),
        "sp": (n, min(n, joined)),
        "micro_batch": (workload.batch_size, _MAX_MICRO_BATCH),
        "ep": (model.experts.n_experts if model.experts else 1, n),
        "etp": (n, min(n, joined)),
        "shard": (n, n),
        "ulysses": (n, min(n, _MAX_CP)),
    }
    if name in sizes:
        return _divisors(*sizes[name])
    if name in ("first_layers", "last_layers"):
        shares = {
            -(-model.n_layers // pp) for pp in searched_values("pp", model, cluster, workload)
        }
        return tuple(sorted({0, *(max(share - less, 0) for share in shares for less in _LESS)}))
    if name == "precision":
        rule = precision_units(cluster)
        values = KNOBS[name].scale.values[Precision.BF16 :]  # fp16 is as fast as bf16
        return tuple(v for v in values if rule.holds(Configuration(bucket=1, precision=v)))
    listed = {
        "bucket": _BUCKETS,
        "zero": _ZERO,
        "chunks": _chunks(model.n_layers),
        "recompute_layers": tuple(range(model.n_layers // 2 + 1)),
        "grad_accum": (1, 2, 4, 8, 16),
    }
    return listed.get(name) or tuple(int(value) for value in KNOBS[name].scale.values)


def _divisors(of: int, largest: int) -> tuple[int, ...]:
    return tuple(i for i in range(1, largest + 1) if of % i == 0)


def _chunks(n_layers: int) -> tuple[int, ...]:
    """Numbers of chunks over which the layers, or they and the two embeddings, can split."""
    return tuple(
        i
        for i in range(1, min(n_layers, _MAX_CHUNKS) + 1)
        if n_layers % i == 0 or (n_layers + 2) % i == 0
    )
