"""Where a rank stands: its place along every dimension, and the groups it talks to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch.distributed as dist

if TYPE_CHECKING:
    from parabolt.space.configuration import Configuration

#: A process group; None where it would have a single member.
Group = Any


@dataclass(frozen=True)
class Mesh:
    """A rank's place in pp x dp x cp x tp, tp varying fastest, and its groups.

    Attributes:
        configuration: The sizes.
        pp_rank: Pipeline rank.
        dp_rank: Data-parallel rank.
        cp_rank: Context-parallel rank.
        tp_rank: Tensor-parallel rank.
        pp_group: Ranks of this pipeline.
        cp_group: Ranks that share these sequences.
        tp_group: Ranks that share these layers.
        sp_group: Ranks of the tensor-parallel group that split activations between them.
        data_group: Data-parallel and context-parallel ranks: all that hold the same parameters.
    """

    configuration: Configuration
    pp_rank: int
    dp_rank: int
    cp_rank: int
    tp_rank: int
    pp_group: Group
    cp_group: Group
    tp_group: Group
    sp_group: Group
    data_group: Group

    @property
    def sp_rank(self) -> int:
        """Rank within the sequence-parallel group."""
        return self.tp_rank % self.configuration.sp

    @classmethod
    def of(cls, configuration: Configuration, rank: int) -> Mesh:
        """The place of `rank`; all ranks call it together, because groups are made."""
        c = configuration
        places = [
            (pp, dp, cp, tp)
            for pp in range(c.pp)
            for dp in range(c.dp)
            for cp in range(c.cp)
            for tp in range(c.tp)
        ]
        pp, dp, cp, tp = places[rank]

        def group(*split: object) -> Group:
            """The group of the ranks that agree with this one in what `split` says."""
            return _group(split, rank)

        return cls(
            configuration, pp, dp, cp, tp,
            pp_group=group(*((q[1], q[2], q[3]) for q in places)),
            cp_group=group(*((q[0], q[1], q[3]) for q in places)),
            tp_group=group(*((q[0], q[1], q[2]) for q in places)),
            sp_group=group(*((q[0], q[1], q[2], q[3] // c.sp) for q in places)),
            data_group=group(*((q[0], q[3]) for q in places)),
        )  # fmt: skip


def _group(keys: tuple[object, ...], rank: int) -> Group:
    """Makes a group for each key, in the same order on every rank; returns this rank's own."""
    own = None
    for key in dict.fromkeys(keys):
        members = [other for other, its in enumerate(keys) if its == key]
        if len(members) > 1:
            made = dist.new_group(members)
            if rank in members:
                own = made
    return own
