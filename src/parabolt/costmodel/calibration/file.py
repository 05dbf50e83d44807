"""Calibrations as TOML files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.costmodel.calibration.belief import CoefficientBelief
from parabolt.costmodel.calibration.calibration import Calibration
from parabolt.costmodel.calibration.failure import FailureBelief
from parabolt.documents import parse_toml, read_text
from parabolt.errors import TableError

if TYPE_CHECKING:
    import os

_FORMAT = 1


def save_calibration(calibration: Calibration, path: str | os.PathLike[str]) -> None:
    """Writes a calibration: coefficients in words and numbers, and their covariance."""
    lines = [
        "# Calibration of the parabolt cost model. Means and covariances of the coefficients of",
        "# time and memory are those of their logarithms; `coefficients` only helps the reader.",
        f"format = {_FORMAT}",
        f"n_trials = {calibration.n_trials}",
        f"instances = {json.dumps(list(calibration.instances))}",
        f"usable = {calibration.failures.usable!r}",
        f"usable_log_std = {calibration.failures.usable_log_std!r}",
    ]
    for part, belief in _beliefs(calibration).items():
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

    A coefficient that the file doesn't have, as it was written before the term was there, is what
    specifications say.

    Raises:
        TableError: If the file can't be read, is of another format, or has unknown coefficients.
    """
    try:
        document = parse_toml(read_text(path, "calibration", TableError), TableError)
    except TableError as error:
        raise TableError(f"{path}: {error}") from error
    if document.get("format") != _FORMAT:
        raise TableError(f"{path}: expected format {_FORMAT}, got {document.get('format')!r}")
    try:
        beliefs = {
            part: _belief(document[part], prior)
            for part, prior in _beliefs(Calibration.prior()).items()
        }
        usable, log_std = _positive(document["usable"]), _positive(document["usable_log_std"])
        return Calibration(
            beliefs["time"],
            beliefs["memory"],
            FailureBelief(usable, log_std, beliefs["crash"]),
            n_trials=int(document["n_trials"]),
            instances=tuple(map(str, document["instances"])),
        )
    except KeyError as error:
        raise TableError(f"{path}: expected the key {error}, got none") from error
    except (TypeError, ValueError) as error:
        raise TableError(f"{path}: {error}") from error


def _beliefs(calibration: Calibration) -> dict[str, CoefficientBelief]:
    crash = calibration.failures.crash
    return {"time": calibration.time, "memory": calibration.memory, "crash": crash}


def _belief(table: dict[str, Any], prior: CoefficientBelief) -> CoefficientBelief:
    """The belief that a table describes, within the coefficients of `prior`."""
    names = list(map(str, table["names"]))
    if wrong := [n for n in names if n not in prior.names or names.count(n) > 1]:
        raise ValueError(f"expected coefficients among {list(prior.names)}, got {wrong}")
    stated = np.array(table["mean"], dtype=np.float64)
    covariances = np.array(table["covariance"], dtype=np.float64)
    k = len(names)
    if stated.shape != (k,) or covariances.shape != (k, k):
        raise ValueError(f"expected {k} means and {k} x {k} covariances, got {len(stated)} means")
    at = [prior.names.index(name) for name in names]
    mean, covariance = prior.mean.copy(), prior.covariance.copy()
    mean[at], covariance[np.ix_(at, at)] = stated, covariances
    is_proper = np.isfinite(mean).all() and np.isfinite(covariance).all()
    if not is_proper or np.linalg.eigvalsh(covariance).min() <= 0.0:
        raise ValueError("expected finite means and a positive definite covariance, got neither")
    return CoefficientBelief(prior.names, mean, covariance, _positive(table["sigma"]))


def _positive(number: Any) -> float:
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0 < number < 1e9:
        raise ValueError(f"expected a positive number, got {number!r}")
    return float(number)
