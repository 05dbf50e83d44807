"""Builds the tables `uscale-MODEL-GPUS` from the runs of the Ultra-Scale Playbook.

Usage: python scripts/uscale.py RUNS.csv OUT_DIR

RUNS.csv has one row a run with the columns of `COLUMNS`, taken from the figure data of the Hugging
Face Space nanotron/ultrascale-playbook (Apache-2.0). Each instance becomes a directory with table,
card and instance, as `parabolt table build` makes it, and is verified. What is left out and what is
merged stands on the card.
"""

import csv
import math
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from parabolt.instances.catalogue import parse_instance
from parabolt.instances.hardware import load_gpu
from parabolt.tables.publishing.build import build
from parabolt.tables.publishing.provenance import Provenance
from parabolt.tables.schema import context_values
from parabolt.tables.sources import locate

COLUMNS = (
    "model", "nodes", "gpus", "dp", "tp", "pp", "mbs", "grad_acc", "gbs", "zero", "status",
    "mfu_percent", "tokens_per_s_per_gpu", "tokens_per_s", "gpu_memory_gb", "consistent",
)  # fmt: skip
SEQUENCE_LENGTH = 4096
DATA_VERSION = "v1"
#: Layers, hidden size, heads, inner size of the feed-forward block, whether the embedding table is
#: the output projection: nanotron, scripts/scaling_benchmarks.py.
SHAPES = {
    "1B": (16, 2048, 32, 8192, True),
    "3B": (28, 3072, 32, 8192, True),
    "8B": (32, 4096, 32, 14336, False),
    "80B": (80, 8192, 64, 28672, False),
}
#: Models of which the source mixes two shapes: GFLOP per token of ours, without grouped queries,
#: and of the other one, with them.
GFLOP_PER_TOKEN = {"80B": (513.0, 456.0)}
#: Peak that the source's MFU refers to, TFLOP/s; and its rounding: half a unit of the last digit.
PEAK_TFLOPS, HALF_MFU, HALF_TOKENS = 989.5, 0.05, 0.5
OWN, OTHER, UNKNOWN = "without grouped queries", "with grouped queries", "not recorded"

SOURCE = (
    "Source: figure data of the Hugging Face Space nanotron/ultrascale-playbook (Apache-2.0), file "
    "assets/data/benchmarks/benchmarks_interactive.html. Taken over: each run's configuration, "
    "whether it finished, tokens/s and memory. Derived: iterations/s = tokens/s over the tokens of "
    "an iteration, and the memory margin against the GPU's memory."
)
TOML = """\
# {model} on {gpus} H100: the Ultra-Scale Playbook's sweep (see data/{name}/README.md).
name = "{name}"
dialect = "nanotron"

[model]
n_layers = {layers}
n_heads = {heads}
hidden_size = {hidden}
ffn_size = {ffn}
vocabulary = 131072
is_tied = {is_tied}

[cluster]
n_gpus = {gpus}
n_hosts = {nodes}
# The source says GB. Its largest figure, 77.4, is just below the 79.6 GiB of an H100, and far from
# the same memory in units of 10^9 bytes, 85.5; so figures are taken for GiB.
memory_gib = {memory_gib}
gpu = "h100-80gb"

[workload]
sequence_length = {sequence_length}
batch_size = {batch}
# Reduce-scatter mode: sequence parallelism comes with tensor parallelism. Recomputation is not
# stated in the source, and taken for none.
is_sequence_parallel = true

[knobs]
dp = {dp}
tp = {tp}
pp = {pp}
# Assumed: PyTorch's default; the source does not state it.
bucket = [25]
zero = {zero}
micro_batch = {micro_batch}
"""

Row = dict[str, str]


@dataclass(frozen=True)
class Selection:
    """The runs of an instance by configuration, and how many were left out and why.

    Attributes:
        runs: Configuration (dp, tp, pp, micro_batch, zero) to its runs, in the source's order.
        n_runs: Runs in the source.
        n_inconsistent: Left out, since sizes do not multiply to the GPUs or the batch.
        n_other_shape: Left out, since they measured the model's other shape.
        n_unknown_shape: Finished, and rounded too far to tell the shape.
    """

    runs: dict[tuple[int, ...], list[Row]]
    n_runs: int = 0
    n_inconsistent: int = 0
    n_other_shape: int = 0
    n_unknown_shape: int = 0


def main(source: Path, target: Path) -> None:
    """Writes one directory per instance."""
    for (model, gpus), rows in sorted(instances(read(source)).items(), key=_order):
        name = f"uscale-{model.lower()}-{gpus}"
        selection = select(model, rows)
        instance_text = describe(name, model, rows, selection)
        instance = parse_instance(instance_text, origin=name)
        with tempfile.TemporaryDirectory() as folder:
            sweep = Path(folder) / f"{name}.csv"
            write_export(sweep, instance, model, selection)
            built = build(
                sweep, instance, target / name, instance_text=instance_text, version=DATA_VERSION,
                title=f"Ultra-Scale Playbook, {model} on {gpus} GPUs", license="apache-2.0",
                provenance=provenance(model, selection),
            )  # fmt: skip
        for finding in [*built.findings, *locate(target / name).verify().findings]:
            sys.exit(f"error: {name}: {finding}")
        facts = built.facts
        print(
            f"{name}: {selection.n_runs} runs, {facts.n_rows} candidates, {facts.n_feasible} "
            f"finished, {built.coverage.n_covered} of {built.coverage.n_valid} valid"
        )


def _order(item: tuple[tuple[str, int], Any]) -> tuple[float, int]:
    (model, gpus), _ = item
    return float(model.rstrip("B")), gpus


def read(source: Path) -> list[Row]:
    """The runs of the source."""
    with source.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
    if missing := sorted(set(COLUMNS) - set(reader.fieldnames or [])):
        sys.exit(f"error: {source}: expected the columns {', '.join(COLUMNS)}; missing {missing}")
    if unknown := sorted({row["model"] for row in rows} - set(SHAPES)):
        sys.exit(f"error: {source}: expected models among {', '.join(SHAPES)}, got {unknown}")
    if unknown := sorted({row["status"] for row in rows} - {"ok", "crashed_or_oom"}):
        sys.exit(f"error: {source}: expected status ok or crashed_or_oom, got {unknown}")
    return rows


def instances(rows: list[Row]) -> dict[tuple[str, int], list[Row]]:
    """The runs by model and number of GPUs."""
    found: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in rows:
        found[row["model"], int(row["gpus"])].append(row)
    return dict(found)


def select(model: str, rows: list[Row]) -> Selection:
    """The runs that belong to the instance; see `Selection`."""
    found = Selection(defaultdict(list), n_runs=len(rows))
    for row in rows:
        shape = shape_of(model, row)
        if row["consistent"] != "1" or not is_consistent(row):
            found = replace(found, n_inconsistent=found.n_inconsistent + 1)
        elif shape == OTHER:
            found = replace(found, n_other_shape=found.n_other_shape + 1)
        else:
            is_unknown = shape == UNKNOWN and row["status"] == "ok"
            found = replace(found, n_unknown_shape=found.n_unknown_shape + is_unknown)
            found.runs[configuration(row)].append(row)
    return found


def configuration(row: Row) -> tuple[int, ...]:
    """The searched knobs of a run."""
    return tuple(int(row[name]) for name in ("dp", "tp", "pp", "mbs", "zero"))


def is_consistent(row: Row) -> bool:
    """Whether the sizes multiply to the GPUs and to the batch."""
    dp, tp, pp, micro_batch, _ = configuration(row)
    batch = dp * micro_batch * int(row["grad_acc"])
    return dp * tp * pp == int(row["gpus"]) and batch == int(row["gbs"])


def shape_of(model: str, row: Row) -> str:
    """Which of the model's two shapes a run measured, by GFLOP per token within its rounding."""
    if model not in GFLOP_PER_TOKEN:
        return OWN
    if row["status"] != "ok":
        return UNKNOWN
    mfu, rate = float(row["mfu_percent"]), float(row["tokens_per_s_per_gpu"])
    low, high = (
        (mfu + sign * HALF_MFU) * PEAK_TFLOPS * 10.0 / (rate - sign * HALF_TOKENS)
        for sign in (-1.0, 1.0)
    )
    own, other = GFLOP_PER_TOKEN[model]
    middle = (own + other) / 2.0
    if low > middle:
        return OWN
    return OTHER if high < middle else UNKNOWN


def describe(name: str, model: str, rows: list[Row], selection: Selection) -> str:
    """The instance as TOML; the levels are those of the candidates."""
    layers, hidden, heads, ffn, is_tied = SHAPES[model]
    levels = [sorted(set(column)) for column in zip(*selection.runs, strict=True)]
    (batch,) = {run["gbs"] for runs in selection.runs.values() for run in runs}
    (nodes,) = {row["nodes"] for row in rows}
    dp, tp, pp, micro_batch, zero = levels
    return TOML.format(
        name=name, model=model, gpus=rows[0]["gpus"], nodes=nodes, layers=layers, heads=heads,
        hidden=hidden, ffn=ffn, is_tied=str(is_tied).lower(), batch=batch, dp=dp, tp=tp, pp=pp,
        zero=zero, micro_batch=micro_batch, sequence_length=SEQUENCE_LENGTH,
        memory_gib=load_gpu("h100-80gb").memory_gib,
    )  # fmt: skip


def write_export(path: Path, instance: Any, model: str, selection: Selection) -> None:
    """The raw export of a table: one row per configuration, in the source's order."""
    has_repeats = any(len(runs) > 1 for runs in selection.runs.values())
    rows = [
        {
            **_inputs(instance, sizes),
            **outputs(instance, runs, has_repeats=has_repeats),
            **({"model_shape": _shape(model, runs)} if model in GFLOP_PER_TOKEN else {}),
            **context_values(instance),
        }
        for sizes, runs in selection.runs.items()
    ]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _inputs(instance: Any, sizes: tuple[int, ...]) -> dict[str, Any]:
    values = dict(zip(("dp", "tp", "pp", "micro_batch", "zero"), sizes, strict=True))
    return {axis.column: axis.cell(values[axis.knob.name]) for axis in instance.encoding.axes}


def outputs(instance: Any, runs: list[Row], *, has_repeats: bool) -> dict[str, Any]:
    """Figures of a configuration: the median of its runs that finished, or a failure."""
    tokens = instance.workload.batch_size * instance.workload.sequence_length
    rates = [_figure(run, "tokens_per_s") / tokens for run in runs]
    peaks = [_figure(run, "gpu_memory_gb") for run in runs]
    finished = [not math.isnan(rate) for rate in rates]
    is_ok = any(finished)
    peak = median(p for p in peaks if not math.isnan(p)) if is_ok else math.nan
    found = {
        "ran_successfully": is_ok,
        "throughput_mean": median(r for r in rates if not math.isnan(r)) if is_ok else math.nan,
        "peak_mem_normalised": peak / instance.peak_mem_column.capacity - 1.0,
        "peak_mem": peak,
        "status": "ok" if is_ok else "failed",
    }
    if has_repeats:
        is_repeated = len(runs) > 1
        found |= {
            "throughput_repeats": rates if is_repeated else "",
            "peak_mem_repeats": peaks if is_repeated else "",
            "is_contradictory": is_ok and not all(finished),
        }
    return found | {f"source_{of}": "measured" for of in ("feasible", "throughput", "memory")}


def _figure(run: Row, name: str) -> float:
    return float(run[name]) if run["status"] == "ok" else math.nan


def _shape(model: str, runs: list[Row]) -> str:
    found = {shape_of(model, run) for run in runs}
    return OWN if OWN in found else UNKNOWN


def provenance(model: str, selection: Selection) -> Provenance:
    """What the card says of the source, and of the runs that are left out or merged."""
    repeats = [runs for runs in selection.runs.values() if len(runs) > 1]
    n_contradictory = sum(len({run["status"] for run in runs}) > 1 for runs in repeats)
    notes = [
        SOURCE,
        f"Of {selection.n_runs} runs {selection.n_inconsistent} are left out, whose sizes do not "
        "multiply to the GPUs or the batch.",
        f"{len(repeats)} configurations have several runs, and the median of those that finished "
        f"counts; {n_contradictory} of them finished once and failed once, and are marked.",
        "A failed run ended for lack of memory or with a crash: the source does not tell which.",
    ]
    if model in GFLOP_PER_TOKEN:
        notes.append(
            f"The source mixes two shapes of this model, told apart by GFLOP per token: "
            f"{selection.n_other_shape} runs {OTHER} are left out; of {selection.n_unknown_shape} "
            "runs the rounding hides the shape, and that of failed runs is not recorded, as the "
            "column model_shape says."
        )
    return Provenance(
        gpu="NVIDIA H100 80 GB, 8 in a host",
        software="nanotron; its version is not stated",
        notes=tuple(notes),
    )


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
