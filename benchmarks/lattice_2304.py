"""The lattice of 2,304 GPUs with every knob: its size, a sample, and the time and memory they take.

Usage: python benchmarks/lattice_2304.py

The target is 5 s and 1 GB. Other processes do not count in processor time, but they share caches
and memory, so the figures are those of a quiet machine.
"""

from __future__ import annotations

import resource
import time
from dataclasses import replace

import numpy as np

from parabolt.instances.cluster_words import parse_cluster
from parabolt.instances.models import load_model
from parabolt.instances.specs import Instance, Workload
from parabolt.planner.request import plan_instance, plan_rules
from parabolt.space.knobs import KNOBS
from parabolt.space.lazy_lattice import LazyLattice
from parabolt.space.rules import check

N_DRAWN = 1_000_000


def every_knob_instance(dialect: str) -> Instance:
    """A model of DeepSeek V3's kind with 126 layers on 2,304 GPUs, with every knob searched."""
    model = replace(load_model("deepseek-v3"), n_layers=126)
    workload = Workload(8192, 2304)
    knobs: dict[str, tuple[int, ...]] = dict.fromkeys(KNOBS, ())
    return plan_instance(model, parse_cluster("288x8 b200"), workload, knobs=knobs, dialect=dialect)


def main() -> None:
    """Prints the figures for every dialect that has most of the knobs."""
    for dialect in ("bolt", "megatron-lm@0.16", "torchtitan"):
        start = time.process_time()
        instance = every_knob_instance(dialect)
        rules = plan_rules(instance)
        lattice = LazyLattice(dict(instance.levels), rules)
        counted = time.process_time() - start
        drawn = lattice.sample(N_DRAWN, np.random.default_rng(0))
        drawn_after = time.process_time() - start
        for row in range(0, len(drawn), max(1, len(drawn) // 100)):
            check(drawn[row], rules)
        n_searched = sum(len(values) > 1 for _, values in instance.levels)
        peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
        print(
            f"{dialect}: {n_searched} knobs searched, {lattice.n:,} configurations counted in "
            f"{counted:.2f} s, {len(drawn):,} drawn after {drawn_after:.2f} s; peak "
            f"{peak_gb:.2f} GB"
        )


if __name__ == "__main__":
    main()
