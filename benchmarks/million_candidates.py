"""A step of every method on 1,000,000 candidates: processor time of one thread, and peak memory.

Usage: python benchmarks/million_candidates.py [--every-knob] [METHOD ...]

With --every-knob the candidates are drawn from the lattice of 2,304 GPUs in which every knob is
searched (`lattice_2304`); methods that use the cost model refuse knobs that it does not describe.
Each method runs in a process of its own. The target is a step of at most 1.5 s (the first one fits
twice) within 2 GB, after 25 observations. Other processes do not count in processor time, but they
share caches and memory, so the figures are those of a quiet machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import parabolt
from lattice_2304 import every_knob_instance
from parabolt.instances.catalogue import parse_instance

N_CANDIDATES = 1_000_000
POWERS = [2**i for i in range(16)]
KNOBS = {
    "dp": POWERS[:12],
    "tp": POWERS[:4],
    "pp": POWERS[:12],
    "cp": POWERS[:12],
    "sp": POWERS[:4],
    "bucket": POWERS,
    "zero": [0, 2, 3],
    "chunks": POWERS[:13],
    "grad_accum": POWERS[:14],
}
INSTANCE = """name = "huge"
[model]
n_layers = 4096
n_heads = 4096
hidden_size = 8192
ffn_size = 32768
[cluster]
n_gpus = 2048
n_hosts = 256
memory_gib = 96
[workload]
sequence_length = 8192
batch_size = 512
[knobs]
""" + "\n".join(f"{name} = {sizes}" for name, sizes in KNOBS.items())


def main(methods: list[str]) -> None:
    """Prints a line for each method."""
    print(f"{'method':14} {'first step, s':>14} {'later steps, s':>15} {'peak, GB':>9}")
    every_knob = methods[:1] == ["--every-knob"]
    for name in methods[every_knob:] or parabolt.optimizer_names():
        try:
            (first, *later), peak_gb = measured(name, every_knob=every_knob)
        except subprocess.CalledProcessError as error:
            print(f"{name:14} {error.stderr.splitlines()[-1]}", flush=True)
            continue
        print(f"{name:14} {first:14.2f} {max(later):15.2f} {peak_gb:9.2f}", flush=True)


def measured(name: str, *, every_knob: bool = False) -> tuple[list[float], float]:
    """Seconds of four steps of a method, and its peak memory in GB, from a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--one", name, *["every-knob"] * every_knob],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    steps, peak_gb = json.loads(done.stdout)
    return steps, peak_gb


def measure(name: str, *, every_knob: bool = False) -> tuple[list[float], float]:
    """The same, in this process."""
    rng = np.random.default_rng(0)
    if every_knob:
        space = parabolt.SearchSpace.sampled(every_knob_instance("bolt"), N_CANDIDATES, seed=0)
    else:
        space = parabolt.SearchSpace.lattice(parse_instance(INSTANCE, origin="benchmark"))
        rows = np.sort(rng.choice(len(space), N_CANDIDATES, replace=False))
        space = parabolt.SearchSpace(space.instance, space.encoded[rows])
    optimizer = parabolt.make_optimizer(name, space, seed=0)
    for row in rng.choice(len(space), 25, replace=False):
        optimizer.tell(space.candidates[row], outcome(space.candidates[row]))
    steps = []
    for _ in range(4):
        start = time.process_time()
        configuration = optimizer.ask()
        optimizer.tell(configuration, outcome(configuration))
        optimizer.recommend()
        steps.append(time.process_time() - start)
    # Not ru_maxrss, which a child inherits from the process that started it.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    fields = dict(line.split(":", 1) for line in status.splitlines())
    return steps, int(fields["VmHWM"].split()[0]) / 1e6


def outcome(c: parabolt.Configuration) -> parabolt.Outcome:
    """An invented outcome: small shards run out of memory, pipelines and tensor shards are slow."""
    if c.tp * c.pp < 4:
        return parabolt.Outcome.oom()
    time_s = 1.0 + 0.1 * np.log2(c.pp * c.tp) + 0.01 * np.log2(c.bucket)
    return parabolt.Outcome.ok(float(1 / time_s), memory_margin=1 / (c.tp * c.pp) - 0.5)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(sys.argv[2], every_knob=len(sys.argv) > 3)))
    else:
        main(sys.argv[1:])
