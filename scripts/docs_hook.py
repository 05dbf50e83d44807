"""What mkdocs can't do on its own: pages that aren't written yet leave the navigation."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def on_config(config: Any) -> Any:
    """Drops the entries of the navigation whose file isn't there."""
    config["nav"] = _present(config["nav"], Path(config["docs_dir"]))
    return config


def _present(entries: list[Any], folder: Path) -> list[Any]:
    kept = []
    for entry in entries:
        ((title, target),) = entry.items()
        if isinstance(target, list):
            kept.append({title: _present(target, folder)})
        elif (folder / target).exists():
            kept.append(entry)
    return kept
