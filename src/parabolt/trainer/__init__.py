"""The reference trainer: a small decoder-only transformer with every knob, in plain PyTorch.

Needs PyTorch: `pip install 'parabolt[torch]'`. Start it with `python -m parabolt.trainer`,
which forks its own ranks on one machine, or under torchrun.
"""
