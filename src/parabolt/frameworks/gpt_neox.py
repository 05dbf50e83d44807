"""GPT-NeoX: Megatron's log, in another order of fields."""

from __future__ import annotations

from parabolt.frameworks.framework import Framework
from parabolt.frameworks.megatron_lm import LOG

GPT_NEOX = Framework(
    name="gpt-neox",
    title="GPT-NeoX",
    version="",
    documentation="https://github.com/EleutherAI/gpt-neox",
    log=LOG,
)
