"""One training step of a rank, whatever the configuration is."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleInterleaved1F1B
from torch.nn.parallel import DistributedDataParallel

from parabolt.errors import OptionError
from parabolt.trainer.model import Stage, loss_function, positions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import nn

    from parabolt.space.configuration import Configuration
    from parabolt.trainer.mesh import Mesh
    from parabolt.trainer.model import Architecture


def check(architecture: Architecture, configuration: Configuration, batch_size: int) -> None:
    """Raises unless the batch and the sequence can be split as the configuration asks.

    Raises:
        OptionError: With the sizes at fault.
    """
    c = configuration
    if batch_size % (c.dp * c.grad_accum):
        raise OptionError(
            f"batch size: expected a multiple of dp x grad_accum = {c.dp} x {c.grad_accum}, "
            f"got {batch_size}"
        )
    if architecture.sequence_length % (2 * c.cp * c.sp):
        raise OptionError(
            f"sequence length: expected a multiple of 2 x cp x sp = 2 x {c.cp} x {c.sp}, "
            f"got {architecture.sequence_length}"
        )


class Engine:
    """Model, optimizer and schedule of a rank.

    Args:
        architecture: Shape of the model.
        mesh: The rank's place.
        batch_size: Sequences of an iteration, over all ranks.
        learning_rate: Of AdamW.
        device: Where to compute.

    Raises:
        OptionError: If the batch or the sequence can't be split.
    """

    def __init__(
        self,
        architecture: Architecture,
        mesh: Mesh,
        *,
        batch_size: int,
        learning_rate: float = 1e-3,
        device: torch.device,
    ) -> None:
        self.mesh, self.architecture, self.device = mesh, architecture, device
        c = self.configuration = mesh.configuration
        check(architecture, c, batch_size)
        self._n_sequences = batch_size // c.dp
        n_stages = c.pp * c.chunks
        self.stages = [
            Stage(architecture, mesh, mesh.pp_rank + chunk * c.pp, n_stages).to(device)
            for chunk in range(c.chunks)
        ]
        wrapped = [self._parallelise(stage) for stage in self.stages]
        self._model = wrapped[0]
        self._schedule = self._make_schedule(wrapped, n_stages) if c.pp > 1 else None
        self._parameters = [p for stage in self.stages for p in stage.parameters()]
        self._optimizer = torch.optim.AdamW(self._parameters, lr=learning_rate, eps=1e-6)

    def step(self, tokens: torch.Tensor) -> float:
        """Trains on a batch.

        Args:
            tokens: All sequences of the iteration, (batch size, sequence length + 1) int64, the
                same on every rank.

        Returns:
            The mean loss over all tokens, the same on every rank.
        """
        inputs, targets = self._own_part(tokens)
        self._optimizer.zero_grad(set_to_none=True)
        n = self.configuration.grad_accum
        loss = torch.zeros((), device=self.device)
        for piece, (x, y) in enumerate(zip(inputs.chunk(n), targets.chunk(n), strict=True)):
            if self._schedule is None:
                loss += self._plain(x, y, is_last=piece == n - 1)
            else:
                loss += self._pipelined(self._schedule, x, y)
        if self._schedule is not None:
            reduce_gradients(self._parameters, self.mesh.data_group, self.configuration.bucket)
        self._sum_norm_gradients()
        self._optimizer.step()
        dist.all_reduce(loss)
        c = self.configuration
        return float(loss / (c.dp * c.cp * c.tp))

    def _own_part(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        c, mesh = self.configuration, self.mesh
        own = tokens.chunk(c.dp)[mesh.dp_rank]
        at = positions(self.architecture.sequence_length, c.cp, mesh.cp_rank)
        return own[:, at].to(self.device), own[:, at + 1].to(self.device)

    def _plain(self, x: torch.Tensor, y: torch.Tensor, *, is_last: bool) -> torch.Tensor:
        with self._without_reduction(is_last=is_last):
            loss = loss_function(self._model(x), y) / self.configuration.grad_accum
            loss.backward()
        return loss.detach()

    @contextlib.contextmanager
    def _without_reduction(self, *, is_last: bool) -> Iterator[None]:
        """DDP reduces gradients once, with the last piece; FSDP keeps them reduced throughout."""
        if is_last or not isinstance(self._model, DistributedDataParallel):
            yield
        else:
            with self._model.no_sync():
                yield

    def _pipelined(self, schedule: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        arguments = (x,) if self.mesh.pp_rank == 0 else ()
        if self.mesh.pp_rank < self.configuration.pp - 1:
            schedule.step(*arguments)
            return torch.zeros((), device=self.device)
        losses: list[torch.Tensor] = []
        schedule.step(*arguments, target=y, losses=losses)
        return torch.stack(losses).sum().detach()

    def _make_schedule(self, wrapped: list[nn.Module], n_stages: int) -> Any:
        c = self.configuration
        n_micro = self._n_sequences // c.grad_accum  # micro-batches of one sequence
        stages = [
            PipelineStage(
                module, self.mesh.pp_rank + chunk * c.pp, n_stages, self.device,
                group=self.mesh.pp_group,
            )
            for chunk, module in enumerate(wrapped)
        ]  # fmt: skip
        # The loss carries the scale, for the schedule's own would scale earlier pieces once more.
        scale = 1.0 / (n_micro * c.grad_accum)
        options: dict[str, Any] = {
            "n_microbatches": n_micro,
            "loss_fn": lambda scores, targets: loss_function(scores, targets) * scale,
            "scale_grads": False,
        }
        if c.chunks == 1:
            return Schedule1F1B(stages[0], **options)
        return ScheduleInterleaved1F1B(stages, **options)

    def _parallelise(self, stage: Stage) -> nn.Module:
        c, group = self.configuration, self.mesh.data_group
        if group is None or c.pp > 1:
            return stage  # a pipeline reduces its gradients when its last micro-batch is through
        if c.zero == 0:
            return DistributedDataParallel(
                stage,
                process_group=group,
                bucket_cap_mb=c.bucket,
                gradient_as_bucket_view=True,
                # All ranks make the same weights; buffers are a rank's own.
                init_sync=False,
                broadcast_buffers=False,
            )
        mesh = DeviceMesh.from_group(group, self.device.type)
        options: dict[str, Any] = {"mesh": mesh, "reshard_after_forward": c.zero == 3}
        for layers in _layers_in_buckets(list(stage.layers), c.bucket):
            fully_shard(layers, **options)
        fully_shard(stage, **options)
        return stage

    def _sum_norm_gradients(self) -> None:
        """Adds up what the sequence-parallel ranks know of the norms' gradients."""
        if self.mesh.sp_group is None:
            return
        for stage in self.stages:
            for parameter in stage.norms():
                gradient: Any = parameter.grad
                local = gradient.to_local() if hasattr(gradient, "to_local") else gradient
                dist.all_reduce(local, group=self.mesh.sp_group)


def reduce_gradients(parameters: list[nn.Parameter], group: Any, bucket_mb: int) -> None:
    """Averages gradients over a group, in buckets that are under way at the same time.

    Args:
        parameters: Parameters with gradients.
        group: The ranks that hold the same parameters; None for one.
        bucket_mb: Size of a bucket in MB; the last parameter of a bucket may pass it.
    """
    if group is None:
        return
    work = []
    for bucket in _buckets([p.grad for p in parameters], bucket_mb):
        flat = torch.cat([gradient.flatten() for gradient in bucket])
        work.append((bucket, flat, dist.all_reduce(flat, group=group, async_op=True)))
    for bucket, flat, handle in work:
        handle.wait()
        flat /= dist.get_world_size(group)
        sizes = [gradient.numel() for gradient in bucket]
        for gradient, part in zip(bucket, flat.split(sizes), strict=True):
            gradient.copy_(part.view_as(gradient))


def _layers_in_buckets(layers: list[nn.Module], bucket_mb: int) -> Iterator[list[nn.Module]]:
    """Consecutive layers with about `bucket_mb` MB of parameters, at least one layer each."""
    bucket: list[nn.Module] = []
    for layer in layers:
        bucket.append(layer)
        if _size_mb([p for module in bucket for p in module.parameters()]) >= bucket_mb:
            yield bucket
            bucket = []
    if bucket:
        yield bucket


def _buckets(gradients: list[Any], bucket_mb: int) -> Iterator[list[torch.Tensor]]:
    bucket: list[torch.Tensor] = []
    for gradient in gradients:
        bucket.append(gradient)
        if _size_mb(bucket) >= bucket_mb:
            yield bucket
            bucket = []
    if bucket:
        yield bucket


def _size_mb(tensors: list[torch.Tensor]) -> float:
    return float(sum(t.numel() * t.element_size() for t in tensors)) / 2**20
