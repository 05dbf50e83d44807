"""Builds and verifies a table of ten million rows, and prints time and peak memory of both.

Usage: python benchmarks/table_scale.py [N_ROWS] [--lists]

The instance is invented: 32,768 GPUs with every size a power of two, whose lattice has more than
ten million configurations. The outcomes are invented too. With `--lists` the sweep also has step
times and memory per GPU as lists (5 and 4 numbers). Build and verify run as the command line runs
them, each in a process of its own.
"""

import multiprocessing
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from parabolt.instances.catalogue import parse_instance
from parabolt.outcome import OOM_MARGIN
from parabolt.space.configurations import Configurations
from parabolt.space.encoding import Encoding
from parabolt.space.lattice import enumerate_lattice
from parabolt.tables.schema import context_values

_POWERS = [2**k for k in range(16)]
INSTANCE = f"""
name = "invented"

[model]
n_layers = 32768
n_heads = 32768
hidden_size = 32768
ffn_size = 131072

[cluster]
n_gpus = 32768
n_hosts = 1
memory_gib = 96

[workload]
sequence_length = 8192
batch_size = 512

[knobs]
dp = {_POWERS}
tp = {_POWERS}
pp = {_POWERS}
cp = {_POWERS}
sp = {_POWERS}
bucket = {_POWERS}
zero = [0, 2, 3]
chunks = {_POWERS}
grad_accum = {_POWERS}
"""
BLOCK = 1 << 18

_REPORTING = """
import atexit, resource, sys
atexit.register(lambda: print(
    round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 2), file=sys.stderr))
from parabolt.cli.main import run
run()
"""


def write_sweep(path: Path, n_rows: int, *, lists: bool) -> None:
    """Writes an invented sweep of the first `n_rows` configurations of the lattice."""
    instance = parse_instance(INSTANCE, origin="invented")
    lattice = enumerate_lattice(dict(instance.levels), instance.rules)
    print(f"lattice of {len(lattice):,} configurations; writing {n_rows:,} rows")
    if len(lattice) < n_rows:
        raise SystemExit("the lattice has too few configurations")
    rng = np.random.default_rng(0)
    writer = None
    for start in range(0, n_rows, BLOCK):
        part = lattice[start : min(start + BLOCK, n_rows)]
        block = outcomes(part, instance.encoding, rng, lists=lists)
        constants = {
            name: np.full(block.num_rows, value) for name, value in context_values(instance).items()
        }
        for name, values in constants.items():
            block = block.append_column(name, pa.array(values))
        writer = writer or pa.csv.CSVWriter(path, block.schema)
        writer.write_table(block)
    if writer:
        writer.close()


def outcomes(
    configurations: Configurations,
    encoding: Encoding,
    rng: np.random.Generator,
    *,
    lists: bool,
) -> pa.Table:
    """Knobs and invented outcomes of some configurations."""
    n = len(configurations)
    feasible = rng.random(n) < 0.7
    steps_s = rng.uniform(1.0, 9.0, (n, 1)) * rng.uniform(0.99, 1.01, (n, 5))
    per_gpu = rng.uniform(10.0, 95.0, (n, 4))
    peak = np.where(feasible, per_gpu.max(axis=1), np.inf)
    mean_s = steps_s.mean(axis=1)
    columns = encoding.cells(configurations)
    results = {
        "ran_successfully": feasible,
        "throughput_mean": np.where(feasible, 1.0 / mean_s, np.nan),
        "throughput_std": np.where(feasible, steps_s.std(axis=1) / mean_s**2, np.nan),
        "overall_time": np.where(feasible, steps_s.sum(axis=1) + 60.0, np.nan),
        "peak_mem": peak,
        "peak_mem_normalised": np.where(feasible, peak / 96.0 - 1.0, OOM_MARGIN),
    }
    table = pa.table({**columns, **results})
    if lists:
        texts = {"all_time_steps": steps_s, "peak_mem_per_gpu": per_gpu}
        for name, values in texts.items():
            cells = [
                str(row) if ok else "" for row, ok in zip(values.tolist(), feasible, strict=True)
            ]
            table = table.append_column(name, pa.array(cells))
    return table


def measure(name: str, *arguments: str) -> None:
    """Runs a command and prints its duration and peak resident memory."""
    command = [sys.executable, "-c", _REPORTING, *arguments]
    start = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    print(done.stdout, end="")
    print(f"{name}: {time.perf_counter() - start:.1f} s, {done.stderr.strip()} GB peak memory")


def main() -> None:
    """Writes the sweep, builds the table and verifies it."""
    numbers = [argument for argument in sys.argv[1:] if argument.isdigit()]
    n_rows = int(numbers[0]) if numbers else 10_000_000
    with tempfile.TemporaryDirectory() as folder:
        sweep, instance, out = (Path(folder, n) for n in ("sweep.csv", "large.toml", "out"))
        instance.write_text(INSTANCE)
        # In a process of its own: a child's peak memory counts what its parent had when it forked.
        writer = multiprocessing.get_context("spawn").Process(
            target=write_sweep, args=(sweep, n_rows), kwargs={"lists": "--lists" in sys.argv}
        )
        writer.start()
        writer.join()
        print(f"sweep: {sweep.stat().st_size / 1e9:.2f} GB of CSV")
        build = ("table", "build", str(sweep), "--instance", str(instance), "--out", str(out))
        measure("build", *build)
        measure("verify", "table", "verify", str(out))


if __name__ == "__main__":
    main()
