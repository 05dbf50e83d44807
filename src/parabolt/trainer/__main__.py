"""`python -m parabolt.trainer`: trains for a few steps and reports them.

Without torchrun it forks all ranks on this machine; under torchrun it is one of its ranks.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from parabolt.errors import MissingDependencyError, ParaboltError
from parabolt.space.configuration import Configuration

try:
    import torch
    import torch.distributed as dist

    from parabolt.trainer.data import batch
    from parabolt.trainer.engine import Engine, check
    from parabolt.trainer.memory import MemoryMeter, return_freed_memory
    from parabolt.trainer.mesh import Mesh
    from parabolt.trainer.model import Architecture
    from parabolt.trainer.ranks import run_ranks
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise MissingDependencyError.of("torch", "torch") from error


def main() -> int:
    """Runs the command line."""
    arguments = _parser().parse_args()
    try:
        configuration = Configuration.parse(arguments.configuration)
        check(_architecture(arguments), configuration, arguments.batch_size)
    except ParaboltError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    if "RANK" in os.environ:
        _train(arguments, configuration, int(os.environ["RANK"]), "env://")
        return 0
    folder = os.environ.get("PARABOLT_LOG_DIR")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as meeting:
        return run_ranks(
            configuration.dp * configuration.tp * configuration.pp * configuration.cp,
            lambda rank: _train(arguments, configuration, rank, f"file://{meeting}/store"),
            None if folder is None else Path(folder),
        )


def _train(
    arguments: argparse.Namespace, configuration: Configuration, rank: int, meeting: str
) -> None:
    c = configuration
    return_freed_memory()
    torch.set_num_threads(arguments.threads)
    on_gpu = torch.cuda.is_available()
    local_rank = int(os.environ.get("LOCAL_RANK", rank))
    device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group(
        "nccl" if on_gpu else "gloo",
        init_method=meeting, rank=rank, world_size=c.dp * c.tp * c.pp * c.cp,
    )  # fmt: skip
    mesh = Mesh.of(c, rank)
    meter = MemoryMeter(device, arguments.memory_gib)
    engine = Engine(_architecture(arguments), mesh, batch_size=arguments.batch_size, device=device)
    for step in range(arguments.steps):
        tokens = batch(
            step,
            batch_size=arguments.batch_size,
            sequence_length=arguments.sequence_length,
            vocabulary_size=arguments.vocabulary_size,
        )
        dist.barrier()
        start = time.perf_counter()
        loss = engine.step(tokens)  # ends with a collective of all ranks
        seconds = time.perf_counter() - start
        if rank == 0:
            _report(step=step, seconds=seconds)
            sys.stdout.write(f"step {step} loss {loss:.6f} seconds {seconds:.4f}\n")
            sys.stdout.flush()
    _report(rank=rank, peak_memory_gib=meter.peak_gib())
    dist.barrier()
    dist.destroy_process_group()


def _report(**record: float) -> None:
    path = os.environ.get("PARABOLT_REPORT")
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def _architecture(arguments: argparse.Namespace) -> Architecture:
    return Architecture(
        n_layers=arguments.n_layers,
        n_heads=arguments.n_heads,
        hidden_size=arguments.hidden_size,
        ffn_size=arguments.ffn_size,
        vocabulary_size=arguments.vocabulary_size,
        sequence_length=arguments.sequence_length,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="parabolt.trainer", description=__doc__)
    parser.add_argument("--configuration", required=True, help='such as "dp=2 tp=2 bucket=4"')
    sizes = {
        "n-layers": 4, "n-heads": 4, "hidden-size": 64, "ffn-size": 256, "vocabulary-size": 256,
        "sequence-length": 64, "batch-size": 8, "steps": 5, "threads": 1,
    }  # fmt: skip
    for name, size in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--memory-gib", type=float, help="memory that a rank may use, in GiB")
    return parser


if __name__ == "__main__":
    sys.exit(main())
