"""Every combination of a small lattice trains as one process does: that makes it a trainer."""

import json
import os

import numpy as np
import pytest
import torch

from parabolt.instances.catalogue import parse_instance
from parabolt.instances.search_space import SearchSpace
from parabolt.space.configuration import Configuration
from parabolt.trainer.model import Architecture, positions

INSTANCE = """
name = "four"
[model]
n_layers = 4
n_heads = 4
hidden_size = 32
ffn_size = 64
[cluster]
n_gpus = 4
n_hosts = 1
memory_gib = 1
[workload]
sequence_length = 32
batch_size = 8
[knobs]
dp = [1, 2, 4]
tp = [1, 2, 4]
pp = [1, 2, 4]
cp = [1, 2, 4]
sp = [1, 2, 4]
bucket = [1, 2]
zero = [0, 2, 3]
chunks = [1, 2]
grad_accum = [1, 2]
"""
ARCHITECTURE = Architecture(
    n_layers=4, n_heads=4, hidden_size=32, ffn_size=64, vocabulary_size=64, sequence_length=32
)
#: float32 sums in another order: relative difference of the loss over five steps of AdamW.
TOLERANCE = 2e-5
N_STEPS = 5


def losses_of(configuration, rank):
    from parabolt.trainer.data import batch
    from parabolt.trainer.engine import Engine
    from parabolt.trainer.mesh import Mesh

    mesh = Mesh.of(configuration, rank)
    engine = Engine(ARCHITECTURE, mesh, batch_size=8, device=torch.device("cpu"))
    return [
        engine.step(batch(step, batch_size=8, sequence_length=32, vocabulary_size=64))
        for step in range(N_STEPS)
    ]


def run_all(configurations, n_ranks, folder):
    """The losses of all configurations, in one world of processes."""
    from parabolt.trainer.ranks import run_ranks

    def work(rank):
        import torch.distributed as dist

        torch.set_num_threads(1)
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
        dist.init_process_group(
            "gloo", init_method=f"file://{folder}/store{n_ranks}", rank=rank, world_size=n_ranks
        )
        losses = []
        for configuration in configurations:
            losses.append(losses_of(configuration, rank))
            dist.barrier()
        if rank == n_ranks - 1:
            (folder / f"losses{n_ranks}.json").write_text(json.dumps(losses))
        dist.barrier()

    assert run_ranks(n_ranks, work, folder) == 0, [
        path.read_text()[-2000:] for path in folder.glob("*.log")
    ]
    return np.array(json.loads((folder / f"losses{n_ranks}.json").read_text()))


def compare(configurations, folder):
    (alone,) = run_all([Configuration(bucket=1)], 1, folder)
    losses = run_all(configurations, 4, folder)
    assert alone[-1] < alone[0] * 0.99, "it must learn, or equality says nothing"
    worst = np.abs(losses / alone - 1).max(axis=1)
    assert (worst < TOLERANCE).all(), [
        f"{c}: {w:.1e}" for c, w in zip(configurations, worst, strict=True) if w >= TOLERANCE
    ]


def test_one_of_each_kind_trains_as_one_process(tmp_path):
    texts = [
        "dp=2 tp=2 sp=2 zero=3 bucket=1",
        "tp=4 sp=2 bucket=1 grad_accum=2",
        "pp=2 cp=2 chunks=2 bucket=1",
        "dp=2 pp=2 bucket=1 grad_accum=2",
    ]
    compare([Configuration.parse(text) for text in texts], tmp_path)


@pytest.mark.slow
def test_every_combination_trains_as_one_process(tmp_path):
    space = SearchSpace.lattice(parse_instance(INSTANCE, origin="test"))
    configurations = list(space.candidates)
    assert len(configurations) > 150
    compare(configurations, tmp_path)


@pytest.mark.parametrize("cp", [1, 2, 4])
def test_context_ranks_share_the_positions_and_the_work(cp):
    own = [positions(32, cp, rank) for rank in range(cp)]
    assert sorted(torch.cat(own).tolist()) == list(range(32))
    assert len({int((p + 1).sum()) for p in own}) == 1  # keys that a rank's queries may see
