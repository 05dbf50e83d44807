"""A rank's memory: measured, and limited.

On a GPU both are the caching allocator's. On a CPU both are the address space that the process has
taken beyond what it held when the meter was made (imports and process groups): its peak is measured
(VmPeak), and a limit set on it (RLIMIT_AS), so that an allocation beyond it fails as it does on a
GPU. It is the same quantity, so a rank that finishes has stayed below its capacity. Freed blocks of
256 kB and more go back to the system at once, so that the space is what is in use. Linux only.
"""

from __future__ import annotations

import ctypes
import resource
from pathlib import Path

import torch

_STATUS = Path("/proc/self/status")
_GIB = 2**30
#: Parameters of mallopt(3), and a value for each: threshold of mmap, number of arenas.
_MALLOPT = ((-3, 256 * 1024), (-8, 1))


def return_freed_memory() -> None:
    """Sets the C allocator up; to be called before the process has a second thread.

    A thread's arena reserves address space in advance, which an allocation could later use without
    being measured or limited.
    """
    libc = ctypes.CDLL(None)
    for parameter, value in _MALLOPT:
        libc.mallopt(parameter, value)


class MemoryMeter:
    """Measures and limits from here on; on a CPU after `return_freed_memory`.

    Args:
        device: Where the tensors are.
        capacity_gib: Memory that the rank may use, in GiB; None for no limit.
    """

    def __init__(self, device: torch.device, capacity_gib: float | None) -> None:
        self._device = device
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
            if capacity_gib is not None:
                total = torch.cuda.get_device_properties(device).total_memory
                torch.cuda.set_per_process_memory_fraction(
                    min(1.0, capacity_gib * _GIB / total), device
                )
            return
        self._baseline_bytes = _status_bytes("VmSize")
        if capacity_gib is not None:
            limit = self._baseline_bytes + int(capacity_gib * _GIB)
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    def peak_gib(self) -> float:
        """Peak memory since the meter was made, in GiB."""
        if self._device.type == "cuda":
            return float(torch.cuda.max_memory_reserved(self._device)) / _GIB
        return (_status_bytes("VmPeak") - self._baseline_bytes) / _GIB


def _status_bytes(name: str) -> int:
    for line in _STATUS.read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"{_STATUS} has no {name}")
