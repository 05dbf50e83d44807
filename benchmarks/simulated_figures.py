"""The `parabolt` optimizer beside others on simulated instances whose machine nobody knows.

Usage: python benchmarks/simulated_figures.py [--seeds N] [--first SEED]

Each seed draws another hidden machine. Prints, per instance and optimizer: evaluations until a
configuration within 1 % of the optimum was tried (median, largest; the budget and one more where
none was), searches that came there, and the share of the trials until then that ran out of memory.
Every optimizer starts without a design of random rows, with the published noise.
"""

import argparse

import numpy as np

from parabolt.analysis.metrics import evaluations_to
from parabolt.experiments.executors.local import LocalExecutor
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.run import RunKey, execute
from parabolt.instances.catalogue import load_instance
from parabolt.instances.models import load_model
from parabolt.instances.search_space import SearchSpace
from parabolt.instances.specs import Instance, Workload
from parabolt.outcome import OOM
from parabolt.planner.request import parse_cluster, plan_instance
from parabolt.problems.simulated import SimulatedProblem

OPTIMIZERS = ("parabolt", "logeic", "tpe", "random")
PROTOCOL = Protocol(n_evaluations=60, n_initial=0, min_feasible=0)
JOBS = (
    ("llama3-8b", "1x8 h100-80gb", 64),
    ("llama3-70b", "16x8 h100-80gb", 256),
    ("llama3-70b", "128x8 h100-80gb", 1024),
)


def instances() -> list[Instance]:
    """The instance of pco16, and the planner's for jobs on 8 to 1,024 GPUs."""
    found = [load_instance("pco16")]
    for model, cluster, batch_size in JOBS:
        workload = Workload(sequence_length=8192, batch_size=batch_size, micro_batch_size=1)
        found.append(plan_instance(load_model(model), parse_cluster(cluster), workload))
    return found


def search(task: tuple[Instance, str, int]) -> tuple[int, int]:
    """One search: evaluations to within 1 %, and how many of them ran out of memory."""
    instance, optimizer, seed = task
    problem = SimulatedProblem(instance, seed=seed)
    run = execute(problem, RunKey.of(problem, optimizer, seed, PROTOCOL))
    count = evaluations_to(run, within=0.01) or PROTOCOL.n_evaluations + 1
    return count, int((run.outcomes.status[:count] == OOM).sum())


def main() -> None:
    """Prints all figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=9000)
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    for instance in instances():
        n_candidates = len(SearchSpace.lattice(instance))
        print(f"{instance.name}, {instance.cluster.n_gpus} GPUs, {n_candidates} candidates")
        for optimizer in OPTIMIZERS:
            tasks = [(instance, optimizer, seed) for seed in seeds]
            results = list(LocalExecutor().map(search, tasks))
            if failed := [result.error for result in results if result.error]:
                raise SystemExit(failed[0])
            counts, n_oom = zip(*(result.value for result in results), strict=True)
            n_trials = sum(min(count, PROTOCOL.n_evaluations) for count in counts)
            came = sum(count <= PROTOCOL.n_evaluations for count in counts)
            print(
                f"  {optimizer:<10}median {np.median(counts):<5g}largest {max(counts):<4}"
                f"came {came} of {len(seeds)}  "
                f"out of memory {sum(n_oom) / n_trials:.1%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
