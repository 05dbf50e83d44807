"""Megatron-DeepSpeed, Microsoft's and BigScience's: Megatron's log beside DeepSpeed's timer."""

from __future__ import annotations

from parabolt.frameworks.framework import Framework
from parabolt.frameworks.megatron_lm import LOG, REJECTIONS

MEGATRON_DEEPSPEED = Framework(
    name="megatron-deepspeed",
    title="Megatron-DeepSpeed",
    version="",
    documentation="https://github.com/deepspeedai/Megatron-DeepSpeed",
    log=LOG,
    rejections=REJECTIONS,
)
