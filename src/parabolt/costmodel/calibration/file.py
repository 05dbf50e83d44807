"""Calibrations as TOML files."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.costmodel.calibration.belief import Belief
from parabolt.costmodel.calibration.calibration import Calibration
from parabolt.errors import TableError

if TYPE_CHECKING:
    import os

_FORMAT = 1
_PARTS = ("time", "memory", "crash")


def save_calibration(calibration: Calibration, path: str | os.PathLike[str]) -> None:
    """Writes a calibration: coefficients in words and numbers, and their covariance."""
    lines = [
        "# Calibration of the parabolt cost model. Means and covariances of the coefficients of",
        "# time and memory are those of their logarithms; `coefficients` only helps the reader.",
        f"format = {_FORMAT}",
        f"n_trials = {calibration.n_trials}",
        f"instances = {json.dumps(list(calibration.instances))}",
        f"usable = {calibration.usable!r}",
        f"usable_log_std = {calibration.usable_log_std!r}",
    ]
    for part in _PARTS:
        belief: Belief = getattr(calibration, part)
        lines += ["", f"[{part}]", f"sigma = {belief.sigma!r}"]
        lines.append(f"names = {json.dumps(list(belief.names))}")
        if part != "crash":
            lines.append(f"coefficients = {np.exp(belief.mean).round(4).tolist()}")
        lines.append(f"mean = {belief.mean.tolist()}")
        rows = ",\n  ".join(str(row) for row in belief.covariance.tolist())
        lines.append(f"covariance = [\n  {rows},\n]")
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def load_calibration(path: str | os.PathLike[str]) -> Calibration:
    """Reads a calibration; the inverse of `save_calibration`.

    Raises:
        TableError: If the file can't be read, is of another format, or of another model's terms.
    """
    try:
        document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise TableError(f"cannot read calibration {path}: {error}") from error
    if document.get("format") != _FORMAT:
        raise TableError(f"{path}: expected format {_FORMAT}, got {document.get('format')!r}")
    start = Calibration.prior()
    try:
        beliefs = {part: _belief(document[part], getattr(start, part)) for part in _PARTS}
        return Calibration(
            **beliefs,
            usable=_positive(document["usable"]),
            usable_log_std=_positive(document["usable_log_std"]),
            n_trials=int(document["n_trials"]),
            instances=tuple(map(str, document["instances"])),
        )
    except KeyError as error:
        raise TableError(f"{path}: expected the key {error}, got none") from error
    except (TypeError, ValueError) as error:
        raise TableError(f"{path}: {error}") from error


def _belief(table: dict[str, Any], like: Belief) -> Belief:
    if tuple(table["names"]) != like.names:
        raise ValueError(f"expected coefficients {list(like.names)}, got {table['names']}")
    mean = np.array(table["mean"], dtype=np.float64)
    covariance = np.array(table["covariance"], dtype=np.float64)
    k = len(like.names)
    if mean.shape != (k,) or covariance.shape != (k, k):
        raise ValueError(f"expected {k} means and {k} x {k} covariances, got {covariance.shape}")
    is_proper = np.isfinite(mean).all() and np.isfinite(covariance).all()
    if not is_proper or np.linalg.eigvalsh(covariance).min() <= 0.0:
        raise ValueError("expected finite means and a positive definite covariance, got neither")
    return Belief(like.names, mean, covariance, _positive(table["sigma"]))


def _positive(number: Any) -> float:
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0 < number < 1e9:
        raise ValueError(f"expected a positive number, got {number!r}")
    return float(number)
