"""Public measured runs of real training, read from a CSV file into instances and trials.

The columns are `source`, the shape (`n_layers`, `hidden`, `ffn`, `heads`, `kv_heads`, `vocab`,
`gated`), the cluster (`n_gpus`, `gpu`, `gpus_per_host`), the knobs (`dp`, `tp`, `pp`, `cp`, `ep`,
`sp`, `zero`, `chunks`, `micro_batch`), the workload (`global_batch`, `seq`, `recompute`,
`precision`) and what was measured (`step_time_s`, `tokens_per_s_per_gpu`, `peak_memory_gb`).
`note` begins with tags such as `[net=50]` (GB/s of network per GPU), `[hbm=2400]` (GB/s),
`[grad=2]` (bytes of a gradient), `[fused=0]` (attention), `[optsharded=0]`, `[moe]`, `[lora]`,
`[oom]` and `[hwflops]` (the time follows from `tflops_per_gpu`).
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from parabolt.errors import InstanceError, ParaboltError
from parabolt.instances.hardware import load_gpu
from parabolt.instances.model_shape import ModelShape
from parabolt.instances.specs import Cluster, Instance, Workload
from parabolt.space.configurations import Configurations

if TYPE_CHECKING:
    from pathlib import Path

_NAN = float("nan")
#: A knob of the searched space is given by the row itself, so the instance lists none of its sizes.
_LEVELS = (("bucket", (64,)),)


@dataclass(frozen=True)
class MeasuredRun:
    """One row.

    Attributes:
        source: Where it was published, up to the first space.
        instance: Model, cluster and workload.
        configurations: Its one configuration; the sizes need not be among the instance's.
        step_time_s: Seconds per iteration; NaN where neither stated nor implied.
        peak_memory_gib: Stated peak; NaN where there is none.
        is_oom: Whether it ran out of memory.
    """

    source: str
    instance: Instance
    configurations: Configurations
    step_time_s: float
    peak_memory_gib: float
    is_oom: bool


def read_runs(path: Path) -> tuple[list[MeasuredRun], dict[str, int]]:
    """The runs of a file that the cost model can describe, and how many it cannot, by reason."""
    runs: list[MeasuredRun] = []
    reasons: dict[str, int] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            try:
                runs.append(_run(row))
            except ParaboltError as error:
                reasons[str(error)] = reasons.get(str(error), 0) + 1
    return runs, reasons


def _run(row: dict[str, str]) -> MeasuredRun:
    if row["ep"] or "[moe]" in row["note"]:
        raise InstanceError("experts are not described")
    if row["precision"] not in ("bf16", "fp16"):
        raise InstanceError(f"precision {row['precision'] or 'not stated'} is not described")
    if "[lora]" in row["note"]:
        raise InstanceError("frozen weights are not described")
    instance = Instance("measured", _model(row), _cluster(row), _workload(row), _LEVELS)
    sizes = {k: _whole(row, k, 1) for k in ("dp", "tp", "pp", "cp", "chunks")}
    sizes |= {"zero": _whole(row, "zero", 0), "bucket": 64}
    sizes["sp"] = sizes["tp"] if row["sp"] == "1" else 1
    return MeasuredRun(
        row["source"].split(" ")[0].split("@")[0],
        instance,
        Configurations(sizes, n=1),
        _step_time_s(row),
        float(row["peak_memory_gb"] or _NAN),
        "[oom]" in row["note"],
    )


def _model(row: dict[str, str]) -> ModelShape:
    hidden, heads = _whole(row, "hidden"), _whole(row, "heads")
    return ModelShape(
        _whole(row, "n_layers"),
        heads,
        hidden,
        _whole(row, "ffn"),
        n_kv_heads=_whole(row, "kv_heads"),
        head_size=hidden // heads if hidden % heads else None,
        vocabulary=_whole(row, "vocab"),
        is_gated=row["gated"] == "1",
        is_tied=re.search(r"\btied", row["note"]) is not None,
    )


def _cluster(row: dict[str, str]) -> Cluster:
    n_gpus = _whole(row, "n_gpus")
    name = "h100-96gb" if row["gpu"].startswith("h100-96gb") else row["gpu"]
    return Cluster(
        n_gpus,
        max(1, n_gpus // _whole(row, "gpus_per_host")),
        load_gpu(name).memory_gib,
        gpu=name,
        inter_host_gb_per_s=_tag(row, "net"),
        hbm_gb_per_s=_tag(row, "hbm"),
    )


def _workload(row: dict[str, str]) -> Workload:
    recomputation = row["recompute"] or "none"
    return Workload(
        _whole(row, "seq"),
        _whole(row, "global_batch"),
        micro_batch_size=_whole(row, "micro_batch"),
        recomputation="none" if recomputation == "selective" else recomputation,
        is_attention_fused=_tag(row, "fused") != 0,
        is_optimizer_sharded=_tag(row, "optsharded") != 0,
        gradient_bytes=int(_tag(row, "grad") or 4),
    )


def _step_time_s(row: dict[str, str]) -> float:
    n_gpus, batch, length = (_whole(row, name) for name in ("n_gpus", "global_batch", "seq"))
    if row["step_time_s"]:
        return float(row["step_time_s"])
    if row["tokens_per_s_per_gpu"]:
        return batch * length / (n_gpus * float(row["tokens_per_s_per_gpu"]))
    if "[hwflops]" in row["note"]:  # arXiv 2104.04473, equation 3
        layers, hidden = _whole(row, "n_layers"), _whole(row, "hidden")
        more = 1 + length / (6 * hidden) + _whole(row, "vocab") / (16 * layers * hidden)
        flops = 96 * batch * length * layers * hidden**2 * more
        return flops / (n_gpus * 1e12 * float(row["tflops_per_gpu"]))
    return _NAN


def _whole(row: dict[str, str], name: str, default: int | None = None) -> int:
    if row[name]:
        return int(float(row[name]))
    if default is None:
        raise InstanceError(f"{name} is not stated")
    return default


def _tag(row: dict[str, str], name: str) -> float | None:
    found = re.search(rf"\[{name}=([\d.]+)\]", row["note"])
    return float(found[1]) if found else None
