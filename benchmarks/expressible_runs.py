"""How many public measured runs can be expressed, and stated to `parabolt plan`.

Usage: python benchmarks/expressible_runs.py RUNS_CSV

RUNS_CSV is a file as `measured_runs` describes it. A run is expressed if an instance and a
configuration describe it and the rules of the framework that ran it accept it. It is stated if
`parabolt plan --count`, told it in words, finds this one configuration.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from parabolt.cli.main import app
from parabolt.errors import InstanceError, ParaboltError
from parabolt.instances.cluster_words import parse_cluster
from parabolt.instances.figures import read_figure
from parabolt.instances.models import load_model
from parabolt.instances.specs import Instance, Workload
from parabolt.planner.knob_words import parse_fixed
from parabolt.space.configuration import Configuration
from parabolt.space.rules import layers_in_stages

if TYPE_CHECKING:
    from collections.abc import Iterator

Row = dict[str, str]

#: Where a run was published, to whose rules it met.
FRAMEWORKS = {
    "torchtitan": "torchtitan", "llm-foundry": "fsdp2", "bigscience": "megatron-deepspeed",
    "bridge": "megatron-bridge", "nemo": "nemo", "dgxc": "nemo", "megatron-lm": "megatron-lm",
    "deepspeed": "deepspeed", "nanotron": "nanotron",
}  # fmt: skip
#: Models that a row names without their shape.
MODELS = {
    "deepseekv3": "deepseek-v3", "gpt": "gpt-oss-120b", "qwen3_30b_a3b": "qwen3-30b-a3b",
    "qwen3_235b_a22b": "qwen3-235b-a22b", "nemotron_3_nano": "nemotron3-nano",
    "nemotron_3_super": "nemotron3-super", "kimi_k2": "kimi-k2",
}  # fmt: skip
SHAPE = {
    "n_layers": "n_layers", "heads": "n_heads", "hidden": "hidden_size", "ffn": "ffn_size",
    "kv_heads": "n_kv_heads", "vocab": "vocabulary",
}  # fmt: skip
PRECISIONS = {"fp4": "nvfp4"}


def main(path: Path) -> None:
    """Prints both shares, and the reasons of the rest."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for what, attempt in (("expressed", express), ("stated to plan", state)):
        reasons = Counter(reason for row in rows if (reason := _reason(attempt, row)))
        n = len(rows) - sum(reasons.values())
        print(f"{what}: {n} of {len(rows)} runs, {n / len(rows):.1%}")
        for reason, count in reasons.most_common():
            print(f"  not {count}: {reason}")


def _reason(attempt: object, row: Row) -> str:
    try:
        attempt(row)  # type: ignore[operator]
    except (ParaboltError, SystemExit, KeyError) as error:
        return str(error)
    return ""


def express(row: Row) -> None:
    """Raises unless an instance and a configuration describe a run."""
    words = _words(row)
    fixed = parse_fixed([words["--fix"], f"precision={words['--precision']}"])
    recompute = words["--recompute"]
    knobs = dict(fixed) | parse_fixed([f"recompute={recompute}"])
    workload = Workload(
        int(words["--seq"]),
        int(words["--batch"]),
        micro_batch_size=int(words["--micro-batch"]),
        **dict(read_figure(word, Workload, "workload") for word in words["--workload"].split()),
    )
    instance = Instance(
        "run", load_model(words["--model"]), parse_cluster(words["--cluster"]), workload,
        tuple(knobs.items()), dialect=words["--framework"],
    )  # fmt: skip
    configuration = Configuration(**{name: values[0] for name, values in knobs.items()})
    instance.check(configuration)


def state(row: Row) -> None:
    """Raises unless the planner, told a run in words, has this one configuration."""
    arguments = ["plan", "--count", "--json"]
    for option, words in _words(row).items():
        arguments += [option, words] if words else []
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        app(arguments, standalone_mode=False)
    found = json.loads(out.getvalue())
    if found["n_candidates"] != 1:
        why = [reason["reason"] for part in found["removed"] for reason in part["reasons"]]
        raise InstanceError("; ".join(why) or f"{found['n_candidates']} configurations")


def _words(row: Row) -> dict[str, str]:
    """Option of `plan` to its words."""
    source = row["source"].lower()
    framework = next((name for word, name in FRAMEWORKS.items() if word in source), "bolt")
    return {
        "--model": _model(row),
        "--cluster": _cluster(row),
        "--seq": _stated(row, "seq"),
        "--batch": _stated(row, "global_batch"),
        "--micro-batch": _stated(row, "micro_batch"),
        "--recompute": row["recompute"] or "none",
        "--precision": PRECISIONS.get(row["precision"], row["precision"]) or "bf16",
        "--workload": " ".join(_workload(row)),
        "--fix": " ".join(_knobs(row, framework)),
        "--framework": framework,
    }


def _model(row: Row) -> str:
    if not row["n_layers"]:
        return MODELS.get(row["model"], row["model"])
    figures = [f"{field}={_stated(row, column)}" for column, field in SHAPE.items()]
    hidden, heads = int(row["hidden"]), int(row["heads"])
    figures += [f"head_size={hidden // heads}"] if hidden % heads else []
    is_tied = re.search(r"\btied", row["note"]) is not None
    figures += [f"is_gated={str(row['gated'] == '1').lower()}"]
    figures += [f"is_tied={str(is_tied).lower()}"]
    return " ".join(figures)


def _cluster(row: Row) -> str:
    n, per_host = int(_stated(row, "n_gpus")), int(_stated(row, "gpus_per_host"))
    per_host = min(n, per_host)
    gpu = "h100-96gb" if row["gpu"].startswith("h100-96gb") else row["gpu"]
    figures = {"inter_host_gb_per_s": _tag(row, "net"), "hbm_gb_per_s": _tag(row, "hbm")}
    stated = [f"{name}={value}" for name, value in figures.items() if value]
    return " ".join([f"{n // per_host}x{per_host}", gpu, *stated])


def _workload(row: Row) -> Iterator[str]:
    if value := _tag(row, "grad"):
        yield f"gradient_bytes={value}"
    if _tag(row, "fused") == "0":
        yield "is_attention_fused=false"
    if "[lora]" in row["note"]:
        yield "is_frozen=true"


def _knobs(row: Row, framework: str) -> Iterator[str]:
    sizes = {name: int(row[name] or 1) for name in ("dp", "tp", "pp", "cp", "ep", "chunks")}
    yield from (f"{name}={size}" for name, size in sizes.items())
    yield f"sp={sizes['tp'] if row['sp'] == '1' else 1}"
    zero = int(row["zero"] or 0)
    if not zero and _tag(row, "optsharded") != "0" and sizes["dp"] * sizes["cp"] > 1:
        zero = 1  # the table says 0 of the distributed optimizer
    yield f"zero={zero}"
    if sizes["ep"] > 1 and framework == "megatron-bridge":
        yield "etp=1"  # of all its recipes with experts
    yield "bucket=25"
    if framework in ("megatron-lm", "megatron-bridge", "nemo"):
        yield from _ends(row, sizes["pp"], sizes["chunks"])


def _ends(row: Row, pp: int, chunks: int) -> Iterator[str]:
    """Layers of the ends, where the rows' source does not say how uneven stages were."""
    n_layers = load_model(_model(row)).n_layers
    if pp == 1 or n_layers % (pp * chunks) == 0:
        return
    share = -(-n_layers // pp)
    holds = layers_in_stages(n_layers).holds
    near = [share - 1, share, share + 1, 0, *range(share - 2, 0, -1), *range(share + 2, 2 * share)]
    for first in near:
        for last in near:
            c = Configuration(bucket=25, pp=pp, chunks=chunks, first_layers=first, last_layers=last)
            if holds(c):
                yield f"first_layers={first}"
                yield f"last_layers={last}"
                return


def _stated(row: Row, column: str) -> str:
    if not row[column]:
        raise InstanceError(f"{column} is not stated")
    return str(int(float(row[column])))


def _tag(row: Row, name: str) -> str:
    found = re.search(rf"\[{name}=([\d.]+)\]", row["note"])
    return found[1] if found else ""


if __name__ == "__main__":
    main(Path(sys.argv[1]))
