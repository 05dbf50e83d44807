"""Megatron-Bridge, the successor of NeMo 2 for large language models: Megatron's log and rules.

What it accepts is what the Megatron core of its container accepts, so versions are those of core.
"""

from __future__ import annotations

from parabolt.frameworks.framework import Framework
from parabolt.frameworks.megatron_lm import LOG, REJECTIONS, rules, rules_0_15, rules_0_16

MEGATRON_BRIDGE = Framework(
    name="megatron-bridge",
    title="Megatron-Bridge",
    version="core 0.15",
    documentation="https://docs.nvidia.com/nemo/megatron-bridge/latest/",
    log=LOG,
    rules=rules_0_15,
    other_versions={"core 0.14": rules, "core 0.16": rules_0_16},
    rejections=REJECTIONS,
)
