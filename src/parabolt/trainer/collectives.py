"""Collectives with gradients. Sequences are dimension 1 of an activation (b, s, h).

A group of None has a single member, and nothing is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from parabolt.trainer.mesh import Group, Mesh


def _slice(x: torch.Tensor, group: Group) -> torch.Tensor:
    if group is None:
        return x
    return x.chunk(dist.get_world_size(group), dim=1)[dist.get_rank(group)].contiguous()


def _gather(x: torch.Tensor, group: Group) -> torch.Tensor:
    if group is None:
        return x
    parts = [torch.empty_like(x) for _ in range(dist.get_world_size(group))]
    dist.all_gather(parts, x.contiguous(), group=group)
    return torch.cat(parts, dim=1)


def _reduce(x: torch.Tensor, group: Group) -> torch.Tensor:
    if group is None:
        return x
    x = x.contiguous()
    dist.all_reduce(x, group=group)
    return x


def _reduce_and_slice(x: torch.Tensor, group: Group, part: Group) -> torch.Tensor:
    """Sum over `group`, of which this rank keeps its slice within `part`."""
    if part is None or dist.get_world_size(part) < dist.get_world_size(group):
        return _slice(_reduce(x, group), part)
    parts = [piece.contiguous() for piece in x.chunk(dist.get_world_size(group), dim=1)]
    own = torch.empty_like(parts[0])
    dist.reduce_scatter(own, parts, group=group)
    return own


class _Enter(torch.autograd.Function):
    """Into a tensor-parallel block: the whole sequence, the same on all ranks of the group."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, mesh: Mesh) -> torch.Tensor:
        ctx.mesh = mesh
        return _gather(x, mesh.sp_group)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return _reduce_and_slice(gradient.clone(), ctx.mesh.tp_group, ctx.mesh.sp_group), None


class _Leave(torch.autograd.Function):
    """Out of a tensor-parallel block: sums the ranks' parts, and keeps the own sequence slice."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, mesh: Mesh) -> torch.Tensor:
        ctx.mesh = mesh
        return _reduce_and_slice(x.clone(), mesh.tp_group, mesh.sp_group)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return _gather(gradient, ctx.mesh.sp_group), None


class _Split(torch.autograd.Function):
    """What all ranks of a group have in full becomes a slice each; gradients are put together."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, group: Group) -> torch.Tensor:
        ctx.group = group
        return _slice(x, group)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return _gather(gradient, ctx.group), None


class _Join(torch.autograd.Function):
    """The inverse of `_Split`: afterwards all ranks do the same with the whole."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, group: Group) -> torch.Tensor:
        ctx.group = group
        return _gather(x, group)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return _slice(gradient, ctx.group), None


class _Share(torch.autograd.Function):
    """Slices become the whole on every rank, each using it in its own way; gradients add up."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, group: Group) -> torch.Tensor:
        ctx.group = group
        return _gather(x, group)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return _reduce_and_slice(gradient, ctx.group, ctx.group), None


def enter_tensor_parallel(x: torch.Tensor, mesh: Mesh) -> torch.Tensor:
    """(b, s / sp, h) to (b, s, h), for weights that are split by columns."""
    return x if mesh.tp_group is None else _call(_Enter, x, mesh)


def leave_tensor_parallel(x: torch.Tensor, mesh: Mesh) -> torch.Tensor:
    """Partial sums (b, s, h) to (b, s / sp, h), after weights that are split by rows."""
    return x if mesh.tp_group is None else _call(_Leave, x, mesh)


def split_sequence(x: torch.Tensor, mesh: Mesh) -> torch.Tensor:
    """(b, s, h), the same on all ranks, to the own (b, s / sp, h)."""
    return x if mesh.sp_group is None else _call(_Split, x, mesh.sp_group)


def join_sequence(x: torch.Tensor, mesh: Mesh) -> torch.Tensor:
    """The inverse of `split_sequence`."""
    return x if mesh.sp_group is None else _call(_Join, x, mesh.sp_group)


def share_context(x: torch.Tensor, mesh: Mesh) -> torch.Tensor:
    """Keys or values (b, s / cp, d) of this rank to those of the whole sequence (b, s, d)."""
    return x if mesh.cp_group is None else _call(_Share, x, mesh.cp_group)


def _call(function: Any, x: torch.Tensor, argument: object) -> torch.Tensor:
    result: torch.Tensor = function.apply(x, argument)
    return result
