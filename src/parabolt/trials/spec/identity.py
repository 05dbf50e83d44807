"""What must not change between a tune or sweep and its continuation, as digests of its parts.

A digest is of what differs from the defaults, so that a field or a knob that a later version adds
changes none. Version 0.1 digested every field; its journals go on, as `identity_0_1` still makes
those digests.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import MISSING, asdict, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from parabolt.instances.specs import Instance, PeakMemColumn
from parabolt.space.knobs import KNOBS, Shown

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Fields of version 0.1 where later versions have more, by the name that they have now.
_FIELDS_0_1: dict[str, tuple[str, ...]] = {
    "Instance": ("name", "model", "cluster", "workload", "levels", "max_virtual_stages"),
    "ModelShape": (
        "n_layers", "n_heads", "hidden_size", "ffn_size", "n_kv_heads", "head_size", "vocabulary",
        "is_gated", "is_tied",
    ),
    "Cluster": (
        "n_gpus", "n_hosts", "memory_gib", "gpu", "peak_bf16_tflops", "hbm_gb_per_s",
        "intra_host_gb_per_s", "inter_host_gb_per_s", "intra_host_latency_us",
        "inter_host_latency_us",
    ),
    "Workload": (
        "sequence_length", "batch_size", "tokens_per_iteration", "micro_batch_size",
        "recomputation", "is_attention_fused", "is_optimizer_sharded", "optimizer_state_bytes",
        "gradient_bytes", "weight_bytes",
    ),
    "TrialSpec": (
        "warmup_steps", "timed_steps", "time_limit_s", "retries", "memory_gib", "log_format",
        "patterns",
    ),
    "OptimizerSpec": ("name", "seed", "options"),
    "StoppingRule": ("threshold", "min_steps"),
}  # fmt: skip

#: What version 0.1 called them. Its "GB" of a GPU's memory were GiB.
_NAMES_0_1 = {"memory_gib": "memory_gb"}


def identity(parts: Mapping[str, Any]) -> dict[str, str]:
    """A digest of each part: data classes, lists, texts and numbers."""
    return {name: _digest(_stated(part)) for name, part in parts.items()}


def identity_0_1(parts: Mapping[str, Any]) -> dict[str, str]:
    """The digests that version 0.1 made; without the parts that it could not express."""
    found = {}
    for name, part in parts.items():
        if not _existed_in_0_1(part):
            continue
        form = _text_0_1(part) if isinstance(part, Instance) else _dict_0_1(part)
        found[name] = _digest(form)
    return found


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _stated(value: Any) -> Any:
    """A value for JSON; of a data class the fields that differ from their defaults."""
    if not is_dataclass(value):
        return value
    found = {}
    for field in fields(value):
        own = getattr(value, field.name)
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if own != default:
            found[field.name] = _stated(own)
    if isinstance(value, Instance):
        found["levels"] = {
            name: [KNOBS[name].plain(v) for v in values]
            for name, values in value.levels
            if values != (KNOBS[name].neutral,)
        }
    return found


def _existed_in_0_1(value: Any) -> bool:
    """Whether all that later versions added has its default."""
    if not is_dataclass(value):
        return True
    stated = _stated(value)
    if isinstance(value, Instance):
        new = [name for name, knob in KNOBS.items() if knob.shown is Shown.NEVER]
        levels = dict(value.levels)
        sizes = [v for name, values in levels.items() if name != "zero" for v in values]
        is_new = any(name in stated["levels"] for name in new) or 1 in levels["zero"]
        if is_new or any(size & (size - 1) for size in sizes):
            return False
        if value.peak_mem == PeakMemColumn("GB", value.cluster.memory_gib):
            del stated["peak_mem"]  # what a file of version 0.1 is read as
    own = _FIELDS_0_1[type(value).__name__]
    parts = [getattr(value, name) for name in own]
    return set(stated) <= set(own) and all(map(_existed_in_0_1, parts))


def _dict_0_1(value: Any) -> Any:
    if not is_dataclass(value) or isinstance(value, type):
        return value
    names = _FIELDS_0_1[type(value).__name__]
    return {_NAMES_0_1.get(name, name): asdict(value)[name] for name in names}


def _text_0_1(value: Any) -> str:
    """The `repr` of an instance or of a part of it, as version 0.1 had it."""
    if not is_dataclass(value):
        return repr(value)
    texts = []
    for name in _FIELDS_0_1[type(value).__name__]:
        own = getattr(value, name)
        if name == "is_optimizer_sharded":
            own = own is not False
        elif name == "levels":
            own = tuple((k, v) for k, v in own if KNOBS[k].shown is not Shown.NEVER)
        texts.append(f"{_NAMES_0_1.get(name, name)}={_text_0_1(own)}")
    return f"{type(value).__name__}({', '.join(texts)})"
