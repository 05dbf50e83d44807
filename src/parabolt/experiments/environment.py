"""What a run was computed with: Python, libraries, processor."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING

import parabolt

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Other libraries whose version may change results.
PACKAGES = ("numpy", "scipy", "optuna", "cmaes")


def environment(libraries: Iterable[str] = ()) -> dict[str, str]:
    """Versions of this package, Python, `PACKAGES` and further libraries; system, processor, BLAS.

    What is not installed is left out. The BLAS kernel is known where threadpoolctl is installed.
    """
    packages = dict.fromkeys((*PACKAGES, *libraries))
    found = {
        "parabolt": parabolt.__version__,  # of the code that runs, as in the key of a run
        **{name: version for name in packages if (version := package_version(name))},
        "python": platform.python_version(),
        "system": platform.system(),
        "processor": platform.machine(),
        "n_cores": str(os.cpu_count()),
    }
    if kernel := _blas_kernel():
        found["blas"] = kernel
    return found


@cache
def package_version(package: str) -> str:
    """Version of an installed package; empty if it isn't there."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


@cache
def _blas_kernel() -> str:
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return ""
    kernels = {
        f"{library['internal_api']} {library.get('version')} {library.get('architecture', '')}"
        for library in threadpool_info()
        if library["user_api"] == "blas"
    }
    return ", ".join(sorted(kernels)).strip()
