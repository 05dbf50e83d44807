"""What must not change between a tune or sweep and its continuation, key by key.

Each key of the spec has a digest of its own, so that a refusal can name it; a key with its default
has none, so that a key that a later version adds changes nothing. What doesn't change a measurement
is free: time limit, retries, launcher, budget, and the variables of `FREE_VARIABLES`. Version 0.1
had one digest for each section; its journals go on, as `digests_0_1` still makes those.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

from parabolt.instances.catalogue import instance_document, stated_fields
from parabolt.instances.specs import Instance, PeakMemColumn
from parabolt.space.knobs import KNOBS, Shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: Beginnings of variables that say where logs and files go, how much is logged, and who one is.
FREE_VARIABLES = (
    "NCCL_DEBUG", "TORCH_CPP_LOG_LEVEL", "TORCH_LOGS", "TORCH_SHOW_CPP_STACKTRACES",
    "TORCHELASTIC_ERROR_FILE", "LOGLEVEL", "PYTHONUNBUFFERED", "PYTHONWARNINGS",
    "PYTHONFAULTHANDLER", "TRANSFORMERS_VERBOSITY", "HYDRA_FULL_ERROR", "WANDB_", "MLFLOW_",
    "COMET_", "HF_TOKEN", "HF_HOME", "HF_HUB_",
)  # fmt: skip
_FREE_KEYS = {"trial.time_limit_s", "trial.retries"}
_SECTIONS_0_1 = {"purpose", "instance", "command", "environment", "trial", "optimizer"}

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
    """A digest of each key of the spec's parts that isn't free and hasn't its default."""
    return {key: _digest(value) for key, value in _keys(parts) if key not in _FREE_KEYS}


def changed_keys(begun: Mapping[str, str], parts: Mapping[str, Any]) -> list[str]:
    """The keys, or sections of version 0.1, in which the parts differ from those at the beginning.

    Args:
        begun: `identity` of the parts at the beginning.
        parts: The parts now: data classes, tables, lists, texts and numbers by name.
    """
    now = digests_0_1(parts) if set(begun) >= _SECTIONS_0_1 else identity(parts)
    names = dict.fromkeys([*now, *begun])
    return [name for name in names if now.get(name) != begun.get(name)]


def _keys(parts: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, part in parts.items():
        if isinstance(part, Instance):
            yield name, instance_document(part)
        elif name == "command":
            yield from zip(("command", "framework"), part, strict=True)
        elif name == "environment":
            yield from ((f"{name}.{key}", value) for key, value in part if not is_free(key))
        elif is_dataclass(part):
            for key, value in stated_fields(part).items():
                inner = value.items() if isinstance(value, dict) else [(key, value)]
                yield from ((f"{name}.{k}", v) for k, v in inner)
        elif part is not None:
            yield name, part


def is_free(variable: str) -> bool:
    """Whether a variable of the environment doesn't change what is measured."""
    return variable.startswith(FREE_VARIABLES)


def digests_0_1(parts: Mapping[str, Any]) -> dict[str, str]:
    """The digests that version 0.1 made; without the parts that it could not express."""
    digests = {}
    for name, part in parts.items():
        if not _existed_in_0_1(part):
            continue
        form = _text_0_1(part) if isinstance(part, Instance) else _dict_0_1(part)
        digests[name] = form if name == "purpose" else _digest(form)
    return digests


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _existed_in_0_1(value: Any) -> bool:
    """Whether all that later versions added has its default."""
    if not is_dataclass(value):
        return True
    stated = stated_fields(value)
    if isinstance(value, Instance):
        new = [name for name, knob in KNOBS.items() if knob.shown is Shown.NEVER]
        levels = dict(value.levels)
        sizes = [v for name, values in levels.items() if name != "zero" for v in values]
        is_new = any(levels[k] != (KNOBS[k].neutral,) for k in new) or 1 in levels["zero"]
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
