"""Synthetic text: sequences that can be learned, the same on every machine."""

from __future__ import annotations

import torch


def batch(
    step: int, *, batch_size: int, sequence_length: int, vocabulary_size: int
) -> torch.Tensor:
    """Tokens (batch_size, sequence_length + 1) int64 of a step.

    A sequence starts at random and goes on with strides that are drawn once per sequence, so that
    the next token follows from the last two.
    """
    generator = torch.Generator().manual_seed(1_000_003 * step + 17)
    start = torch.randint(vocabulary_size, (batch_size, 1), generator=generator)
    stride = torch.randint(1, 8, (batch_size, 1), generator=generator)
    return (start + stride * torch.arange(sequence_length + 1)) % vocabulary_size
