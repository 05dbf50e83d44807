"""Tests of callbacks are left out where the library of the callback isn't installed."""

from importlib.util import find_spec

collect_ignore = [
    f"test_{name}.py" for name in ("transformers", "lightning") if find_spec(name) is None
]
