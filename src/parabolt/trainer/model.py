"""A decoder-only transformer, of which a rank holds some layers and a part of each.

Symbols: b sequences, s positions of this rank (the sequence length / cp), h hidden size. Weights
are split as in Megatron-LM (arXiv 1909.08053, section 3): the first of two by columns, the second
by rows. Sequence parallelism splits what lies between (arXiv 2205.05198, section 4.2.2). Context
parallelism gathers keys and values (arXiv 2407.21783, section 3.3.2), and gives each rank one early
and one late chunk of a sequence, so that all have the same share of the causal mask.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional

from parabolt.trainer.collectives import (
    enter_tensor_parallel,
    join_sequence,
    leave_tensor_parallel,
    share_context,
    split_sequence,
)

if TYPE_CHECKING:
    from parabolt.trainer.mesh import Mesh


@dataclass(frozen=True)
class Architecture:
    """Shape of the model.

    Attributes:
        n_layers: Layers.
        n_heads: Attention heads.
        hidden_size: Width of the residual stream.
        ffn_size: Inner width of the feed-forward block.
        vocabulary_size: Tokens.
        sequence_length: Positions.
        seed: Seed of the initial weights.
    """

    n_layers: int
    n_heads: int
    hidden_size: int
    ffn_size: int
    vocabulary_size: int
    sequence_length: int
    seed: int = 0

    def weight(self, name: str, rows: int, columns: int) -> torch.Tensor:
        """A whole initial weight, the same however the model is split."""
        generator = torch.Generator().manual_seed(self.seed + zlib.crc32(name.encode()))
        return torch.randn(rows, columns, generator=generator) * 0.02


def positions(sequence_length: int, cp: int, cp_rank: int) -> torch.Tensor:
    """Positions of a context-parallel rank, (s,) int64: chunks r and 2 cp - 1 - r of 2 cp."""
    chunks = torch.arange(sequence_length).chunk(2 * cp)
    if cp == 1:
        return torch.arange(sequence_length)
    return torch.cat([chunks[cp_rank], chunks[2 * cp - 1 - cp_rank]])


class Attention(nn.Module):
    """Causal self-attention of this rank's heads.

    Args:
        a: Shape of the model.
        mesh: The rank's place.
        name: Name of the layer, for its weights.
    """

    def __init__(self, a: Architecture, mesh: Mesh, name: str) -> None:
        super().__init__()
        self.mesh = mesh
        self.head_size = a.hidden_size // a.n_heads
        tp, rank = mesh.configuration.tp, mesh.tp_rank
        parts = [
            a.weight(f"{name}.{what}", a.hidden_size, a.hidden_size).chunk(tp)[rank]
            for what in ("query", "key", "value")
        ]
        self.qkv = nn.Parameter(torch.cat(parts))
        out = a.weight(f"{name}.out", a.hidden_size, a.hidden_size)
        self.out = nn.Parameter(out.chunk(tp, dim=1)[rank].contiguous())
        cp = mesh.configuration.cp
        if cp > 1:
            own = positions(a.sequence_length, cp, mesh.cp_rank)
            everyone = torch.cat([positions(a.sequence_length, cp, r) for r in range(cp)])
            self.register_buffer("mask", own[:, None] >= everyone[None, :], persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(b, s / sp, h) to (b, s / sp, h)."""
        x = enter_tensor_parallel(x, self.mesh)
        query, key, value = functional.linear(x, self.qkv).chunk(3, dim=-1)
        key, value = share_context(key, self.mesh), share_context(value, self.mesh)
        query, key, value = (
            t.unflatten(-1, (-1, self.head_size)).transpose(1, 2) for t in (query, key, value)
        )
        if self.mesh.configuration.cp > 1:
            y = functional.scaled_dot_product_attention(query, key, value, attn_mask=self.mask)
        else:
            y = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        y = functional.linear(y.transpose(1, 2).flatten(2), self.out)
        return leave_tensor_parallel(y, self.mesh)


class FeedForward(nn.Module):
    """The feed-forward block; the arguments are those of `Attention`."""

    def __init__(self, a: Architecture, mesh: Mesh, name: str) -> None:
        super().__init__()
        self.mesh = mesh
        tp, rank = mesh.configuration.tp, mesh.tp_rank
        up = a.weight(f"{name}.up", a.ffn_size, a.hidden_size)
        down = a.weight(f"{name}.down", a.hidden_size, a.ffn_size)
        self.up = nn.Parameter(up.chunk(tp)[rank].contiguous())
        self.down = nn.Parameter(down.chunk(tp, dim=1)[rank].contiguous())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(b, s / sp, h) to (b, s / sp, h)."""
        x = enter_tensor_parallel(x, self.mesh)
        inner = functional.gelu(functional.linear(x, self.up))
        return leave_tensor_parallel(functional.linear(inner, self.down), self.mesh)


class Layer(nn.Module):
    """Attention and feed-forward, each normalised before and added to its input."""

    def __init__(self, a: Architecture, mesh: Mesh, name: str) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(a.hidden_size)
        self.attention = Attention(a, mesh, f"{name}.attention")
        self.ffn_norm = nn.RMSNorm(a.hidden_size)
        self.ffn = FeedForward(a, mesh, f"{name}.ffn")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(b, s / sp, h) to (b, s / sp, h)."""
        x = x + self.attention(self.attention_norm(x))
        return x + self.ffn(self.ffn_norm(x))


class Stage(nn.Module):
    """Consecutive layers; the first stage also embeds tokens, the last also predicts them.

    Args:
        a: Shape of the model.
        mesh: The rank's place.
        number: Number of the stage, from 0.
        n_stages: Stages in all.
    """

    def __init__(self, a: Architecture, mesh: Mesh, number: int, n_stages: int) -> None:
        super().__init__()
        self.mesh = mesh
        self.is_first, self.is_last = number == 0, number == n_stages - 1
        per_stage = a.n_layers // n_stages
        if self.is_first:
            tokens = a.weight("tokens", a.vocabulary_size, a.hidden_size)
            self.tokens = nn.Embedding.from_pretrained(tokens, freeze=False)
            places = a.weight("places", a.sequence_length, a.hidden_size)
            self.places = nn.Embedding.from_pretrained(places, freeze=False)
            own = positions(a.sequence_length, mesh.configuration.cp, mesh.cp_rank)
            self.register_buffer("positions", own, persistent=False)
        self.layers = nn.ModuleList(
            Layer(a, mesh, f"layer{number * per_stage + i}") for i in range(per_stage)
        )
        if self.is_last:
            self.norm = nn.RMSNorm(a.hidden_size)
            self.head = nn.Linear(a.hidden_size, a.vocabulary_size, bias=False)
            self.head.weight = nn.Parameter(a.weight("head", a.vocabulary_size, a.hidden_size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Tokens (b, s) or (b, s / sp, h) to (b, s / sp, h) or scores (b, s, vocabulary)."""
        if self.is_first:
            x = split_sequence(self.tokens(x) + self.places(self.positions), self.mesh)
        for layer in self.layers:
            x = layer(x)
        if self.is_last:
            x = self.head(join_sequence(self.norm(x), self.mesh))
        return x

    def norms(self) -> list[nn.Parameter]:
        """Parameters whose gradients are of this rank's slice of the sequence only."""
        return [p for name, p in self.named_parameters() if "norm" in name]


def loss_function(scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy of scores (b, s, vocabulary) and targets (b, s)."""
    return functional.cross_entropy(scores.flatten(0, 1), targets.flatten())
