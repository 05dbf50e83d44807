"""Messages by which frameworks reject a configuration: `rejections.toml`."""

import re
import tomllib
from pathlib import Path

import pytest

from parabolt.frameworks.registry import FRAMEWORKS, rejections

MESSAGES = tomllib.loads((Path(__file__).parent / "rejections.toml").read_text(encoding="utf-8"))
OTHERS = [
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    "RuntimeError: NCCL Error 2: unhandled system error",
    "FileNotFoundError: [Errno 2] No such file or directory: 'data.bin'",
    "ModuleNotFoundError: No module named 'transformer_engine'",
    " iteration        3/      10 | elapsed time per iteration (ms): 2500.5 |",
    "setting global batch size to 512",
    "number of layers per stage: 4",
]


@pytest.mark.parametrize(
    ("name", "message"), [(name, text) for name, texts in MESSAGES.items() for text in texts]
)
def test_a_rejection_is_known(name, message):
    assert any(re.search(text, message) for text in FRAMEWORKS[name].rejections)
    assert any(re.search(text, message) for text in rejections())


@pytest.mark.parametrize("message", OTHERS)
def test_other_messages_are_no_rejection(message):
    assert not any(re.search(text, message) for text in rejections())
