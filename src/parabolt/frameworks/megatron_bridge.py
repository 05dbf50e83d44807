"""Megatron-Bridge, the successor of NeMo 2 for large language models: Megatron's log."""

from __future__ import annotations

from parabolt.frameworks.framework import Framework
from parabolt.frameworks.megatron_lm import LOG, REJECTIONS

MEGATRON_BRIDGE = Framework(
    name="megatron-bridge",
    title="Megatron-Bridge",
    version="",
    documentation="https://docs.nvidia.com/nemo/megatron-bridge/latest/",
    log=LOG,
    rejections=REJECTIONS,
)
