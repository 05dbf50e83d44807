"""The messages by which failures are known: regular expressions over one line of a log.

Sources of the facts: the messages of PyTorch's allocators, CUDA, HIP, XLA, NCCL, gloo, the Linux
kernel, Slurm and torchrun. An expression is as narrow as it can be: hints that only mention memory
must not match, and neither must shortages that are no device or host memory (locked memory, shared
memory, disk).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def _any_of(expressions: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{text})" for text in expressions))


#: Memory of a device or of the host ran out.
OUT_OF_MEMORY = _any_of(
    [
        # Device: PyTorch's caching allocators of CUDA, ROCm and XPU.
        r"(?:CUDA|HIP|XPU|NPU|MPS backend) out of memory",
        r"(?:torch(?:\.cuda)?\.)?OutOfMemoryError:",
        # Device: drivers, libraries and XLA.
        r"(?:CUDA|HIP) error: out of memory",
        r"(?:CUDA|HIP)_ERROR_OUT_OF_MEMORY|(?:cuda|hip)ErrorMemoryAllocation|hipErrorOutOfMemory",
        r"(?:cuda|hip)(?:Malloc|HostAlloc|HostRegister)\w*.{0,60}out of memory",
        r"(?:Cuda|HIP) failure (?:\d+ )?'out of memory'",
        r"Failed to CUDA (?:calloc|malloc)(?! host memory pool limit)",
        r"CU(?:BLAS|DNN|SOLVER|SPARSE|FFT)_STATUS_ALLOC_FAILED",
        r"UR_RESULT_ERROR_OUT_OF_(?:DEVICE|HOST)_MEMORY|PI_ERROR_OUT_OF_(?:RESOURCES|HOST_MEMORY)",
        r"RESOURCE_EXHAUSTED: .*(?:[Oo]ut of memory|allocat|HBM|OOM)",
        # Host: allocators.
        r"DefaultCPUAllocator: (?:can't allocate memory|not enough memory)",
        r"std::bad_alloc",
        r"^(?:\S*: )?MemoryError(?:: .*)?$|numpy\.\S*ArrayMemoryError",
        r"Unable to allocate [\d.]+ [KMGTP]iB for an array",
        r"\[Errno 12\] Cannot allocate memory",
        r"(?:fork|mmap|clone|posix_memalign|malloc)\w*\W.{0,40}Cannot allocate memory",
        # Host: the kernel's and the scheduler's killers.
        r"[Oo]ut of memory: Kill(?:ed)? process|Memory cgroup out of memory",
        r"invoked oom-killer|oom-kill:constraint=",
        r"Detected \d+ oom[-_]kill event|oom-kill event\(s\)",
        r"task \d+: Out Of Memory|Exceeded (?:job|step) memory limit",
        r"\bOOMKilled\b|\bOOM Killed\b",
    ]
)

#: Lines that speak of memory and report no shortage of it, or one that is no model's fault.
NOT_OUT_OF_MEMORY = _any_of(
    [
        r"\bibv_|RLIMIT_MEMLOCK|libibverbs|locked memory",
        r"\b(?:skipp?ing|recover(?:ed|ing)|retry(?:ing)?|retried|caught|handled|avoid|prevent)\b",
        r"insufficient shared memory|/dev/shm",
        r"unrecognized arguments",
    ]
)

#: A rank that gave up only because another one was lost.
LOST_PEER = _any_of(
    [
        r"[Cc]onnection (?:was )?(?:closed|reset|refused)(?: by (?:remote )?peer)?",
        r"remote process exited or there was a network error|ncclRemoteError",
        r"NCCL communicator was aborted|ncclCommAbort|communicator.{0,40}abort",
        r"Socket Timeout|[Bb]roken pipe|recvValue failed|failed to recv|sendBytes failed",
        r"Application timeout caused pair closure",
        r"DistBackendError|DistNetworkError|DistStoreError|TCPStore",
        r"Rendezvous(?:Connection|Closed|Timeout)\w*Error",
        r"SignalException: Process \d+ got signal",
        r"received (?:SIGTERM|signal 15)|Received (?:SIGTERM|15)|death signal",
        r"Sending process \d+ closing signal|CANCELLED AT|Terminated",
        r"[Tt]erminating (?:task|job step)",
        r"[Tt]o avoid data inconsistency|taking the entire process down",
        r"ChildFailedError|failed \(exitcode: -?\d+\)|BrokenPipeError|EOFError",
        r"Job step aborted|task\(s\) (?:unfinished|exited)",
        r"Killed by signal 15|Exited with exit code",
    ]
)

#: A collective that waited for longer than its own time limit.
COLLECTIVE_TIMEOUT = _any_of(
    [
        r"[Ww]atchdog caught collective operation timeout",
        r"[Cc]ollective operation timed? ?out",
        r"WorkNCCL\(.*ran for \d+ milliseconds before timing out",
        r"Timed out waiting \d+ms for (?:recv|send) operation",
        r"wait timeout after \d+ms|monitoredBarrier.*timed out|failed to pass monitoredBarrier",
        r"Watchdog.*got stuck for \d+ seconds|Heartbeat monitor timed out",
    ]
)

#: The line of an exception, or of a program that died.
EXCEPTION = _any_of(
    [
        r"^\s*(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Exit)(?::\s.*)?$",
        r"\bAssertion\b.{0,200}\bfailed|device-side assert",
        r"[Ss]egmentation fault|Fatal Python error|core dumped|SIGSEGV|SIGBUS|[Bb]us error",
        r"terminate called after throwing|\bwhat\(\):",
        r": command not found$|can't open file|unrecognized arguments|: error: argument",
        r"uncorrectable ECC|fallen off the bus|unhandled (?:cuda|system) error",
    ]
)

#: A line that complains, without being certain to be what ended the program.
COMPLAINT = _any_of(
    [
        r"\b(?:ERROR|FATAL|CRITICAL)\b",
        r"^(?:[\w./-]+: )?(?:error|fatal)(?: error)?: ",
        r"No such file or directory|No space left on device|Permission denied",
        r"\bXid\b.*\d|NVLink.*error",
        r"\bKilled\b",
    ]
)


def is_out_of_memory(line: str) -> bool:
    """Whether a line reports that memory ran out."""
    return bool(OUT_OF_MEMORY.search(line)) and not NOT_OUT_OF_MEMORY.search(line)


def is_exception(line: str) -> bool:
    """Whether a line is the message of an exception, or of a program that died."""
    return bool(EXCEPTION.search(line))


def is_complaint(line: str) -> bool:
    """Whether a line complains of something that may have ended the program."""
    return bool(COMPLAINT.search(line))


def is_lost_peer(line: str) -> bool:
    """Whether an error only says that another rank was lost, or that the job was ended."""
    return bool(LOST_PEER.search(line))


def is_collective_timeout(line: str) -> bool:
    """Whether a line says that a collective hung."""
    return bool(COLLECTIVE_TIMEOUT.search(line))
