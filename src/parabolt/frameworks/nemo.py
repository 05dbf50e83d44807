"""NeMo 2: overrides of a recipe, as its command line takes them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from parabolt.frameworks.framework import Framework
from parabolt.frameworks.launch_settings import Settings
from parabolt.frameworks.log_format import LogFormat, LogReader, MemoryRecord, StepRecord
from parabolt.frameworks.megatron_lm import REJECTIONS, rules
from parabolt.frameworks.progress_bar import ProgressBarReader
from parabolt.frameworks.quantities import memory_gib, quantity
from parabolt.instances.micro_batches import micro_batch_size
from parabolt.outcome import GIB

if TYPE_CHECKING:
    from collections.abc import Iterator

    from parabolt.frameworks.log_format import Record
    from parabolt.frameworks.log_line import LogLine
    from parabolt.instances.specs import Instance
    from parabolt.space.configuration import Configuration

VERSION = "2.4 (container 25.07)"
DOCUMENTATION = "https://docs.nvidia.com/nemo-framework/user-guide/latest/nemotoolkit/features/parallelisms.html"
_SHARDING = {2: "optim_grads", 3: "optim_grads_params"}


def settings(instance: Instance, c: Configuration) -> Settings:
    """Overrides for a configuration. ZeRO 1 is the distributed optimizer, 2 and 3 Megatron-FSDP."""
    work, cluster = instance.workload, instance.cluster
    strategy = "trainer.strategy"
    flags = [
        f"trainer.num_nodes={cluster.n_hosts}",
        f"trainer.devices={cluster.gpus_per_host}",
        f"{strategy}.tensor_model_parallel_size={c.tp}",
        f"{strategy}.pipeline_model_parallel_size={c.pp}",
        f"{strategy}.virtual_pipeline_model_parallel_size={c.chunks if c.chunks > 1 else None}",
        f"{strategy}.context_parallel_size={c.cp}",
        f"{strategy}.sequence_parallel={c.sp > 1}",
        f"{strategy}.ddp.use_distributed_optimizer={instance.zero_stage(c.zero) > 0}",
        *_data_parallel(c),
        f"data.seq_length={work.sequence_length}",
        f"data.global_batch_size={work.batch_size}",
        f"data.micro_batch_size={micro_batch_size(work, c)}",
        *_recomputation(instance, c),
    ]
    return Settings(flags)


def _data_parallel(c: Configuration) -> list[str]:
    ddp = "trainer.strategy.ddp"
    buckets = [
        f"{ddp}.overlap_grad_reduce=True",
        f"{ddp}.bucket_size={c.bucket * 1_000_000}",
    ]
    if c.zero < 2:
        return buckets if c.dp * c.cp > 1 else []
    return [
        "trainer.strategy.fsdp=megatron",
        f"{ddp}.use_megatron_fsdp=True",
        f"{ddp}.data_parallel_sharding_strategy={_SHARDING[c.zero]}",
        f"{ddp}.overlap_param_gather={c.zero == 3}",
        f"{ddp}.average_in_collective=False",
        *buckets,
    ]


def _recomputation(instance: Instance, c: Configuration) -> list[str]:
    work = instance.workload
    if work.recomputation == "none":
        return []
    layers = 1 if work.recomputation == "layer" else instance.model.n_layers // (c.pp * c.chunks)
    config = "model.config"
    return [
        f"{config}.recompute_granularity=full",
        f"{config}.recompute_method=uniform",
        f"{config}.recompute_num_layers={layers}",
    ]


_TIME = re.compile(r"\btrain_step_timing in s[:=]\s{0,4}([^\s,|\]]{1,40})")
_GLOBAL_STEP = re.compile(r"\bglobal_step[:=]\s{0,4}([^\s,|\]]{1,40})")
_ITERATION = re.compile(r"\biteration (\d{1,12})/\d")
_BAR = re.compile(r"\b(\d{1,12})/\d{1,12} \[")
#: Bytes: what the allocator holds at most; else what tensors use at most.
_PEAKS = [
    re.compile(rf"\b(?:{name})[:=]\s{{0,4}}([^\s,|\]]{{1,40}})")
    for name in ("max_memory_reserved|peak_memory_usage", "max_memory_allocated")
]


class NemoReader(LogReader):
    """NeMo's progress: a line per log interval (NeMo 2), or a progress bar (NeMo 1 and 2).

    Steps count from 0. The line's figures are means of its interval. A bar is drawn anew with the
    figures of the step before, so `global_step` says whose they are. Where the bar has no
    `train_step_timing`, its rate is read instead.
    """

    words = ("train_step_timing", *ProgressBarReader.words)

    def __init__(self, instance: Instance) -> None:
        super().__init__(instance)
        self._bar = ProgressBarReader(instance)
        self._drawn: list[StepRecord] = []
        self._has_times = False

    def end(self) -> list[StepRecord]:
        """See `LogReader.end`."""
        return [] if self._has_times else self._drawn

    def read(self, line: LogLine) -> Iterator[Record]:
        """See `LogReader.read`."""
        time, step = _TIME.search(line.text), _step(line.text)
        if time is None or step is None:
            self._drawn += self._bar.read(line)
            return
        self._has_times = True
        yield StepRecord(step, quantity(time[1]))
        for pattern in _PEAKS:
            found = pattern.search(line.text)
            if found and (n_bytes := memory_gib(found[1], {"": 1.0})):
                yield MemoryRecord(n_bytes / GIB)
                return


def _step(text: str) -> int | None:
    """Number of the step, counted from 1."""
    if found := _GLOBAL_STEP.search(text):
        return int(quantity(found[1])) + 1
    if found := _ITERATION.search(text):
        return int(found[1]) + 1
    found = _BAR.search(text)
    return int(found[1]) if found else None


NEMO = Framework(
    name="nemo",
    title="NeMo",
    version=VERSION,
    documentation=DOCUMENTATION,
    log=LogFormat(NemoReader),
    rules=rules,
    settings=settings,
    rejections=REJECTIONS,
)
