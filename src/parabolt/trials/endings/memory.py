r"""Messages that memory ran out: their heads, and what stands before a head.

A message is known by its head, such as `CUDA out of memory` or `oom_kill event`. What follows the
head may advise anything: every current PyTorch ends its message with a hint how to avoid
fragmentation. Words such as `caught` or `retrying` count where they stand before the head; after
it only as the next clause (`out of memory, skipping the batch`).

Sources of the facts: the messages of PyTorch's allocators from 1.0 on (CUDA, ROCm, XPU, NPU), CUDA
and its libraries, HIP, Level Zero, Ascend CANN, XLA, TensorFlow, NCCL, bitsandbytes, Ray, the Linux
kernel, systemd, Slurm, PBS, LSF and Kubernetes.
"""

from __future__ import annotations

import re
from enum import IntEnum


class Weight(IntEnum):
    """How much a line says that memory ran out for good."""

    NONE = 0
    #: Somebody speaks of it: it was caught, or a logger calls it a warning.
    MENTION = 1
    #: An allocator failed, and may try again.
    WARNING = 2
    #: A program, the kernel or a scheduler gave up.
    FATAL = 3


_DEVICE = r"(?:CUDA|HIP|ROCm|XPU|NPU|HPU|MLU|MUSA|GCU|TPU|GPU|MPS backend|[Dd]evice)"
_LIBRARY = (
    r"(?i:cuda|hip|rocm|nccl|rccl|cublas|cudnn|cufft|thrust|triton|driver|gpu|device|vram|hbm"
    r"|xpu|npu|sycl|rtmalloc|alloc|error[ =:]{1,3}2)"
)

_DEVICE_HEADS = (
    rf"\b{_DEVICE}(?: memory)? (?:is |ran |runs |has run )?out of memory",
    # not the class of inductor's kernels with too much shared memory; DataParallel says it twice
    r"(?<!\w)(?:\w+\.)*\w*OutOfMemory(?:Error|Exception)\b(?!: (?:out of resource|Caught ))",
    rf"{_LIBRARY}.{{0,200}}?\bout of memory\b",
    r"\b[Ee]rror out of memory at line \d+",
    r"(?:CUDA|HIP)_ERROR_OUT_OF_MEMORY|(?:cuda|hip)ErrorMemoryAllocation|hipErrorOutOfMemory",
    r"(?:CU|HIP)(?:BLAS|DNN|SOLVER|SPARSE)_STATUS_ALLOC_FAILED|CUFFT_ALLOC_FAILED",
    r"cuBLAS Error: the resource allocation failed|cublasStatus.{0,40}resource allocation failed",
    r"rocblas_status_memory_error|miopenStatusAllocFailed|Memory not available to allocate buffer",
    r"HSA_STATUS_ERROR_OUT_OF_RESOURCES",
    r"(?:UR|PI|ZE)_RESULT_ERROR_OUT_OF_\w+|PI_ERROR_OUT_OF_\w+|CL_OUT_OF_\w+",
    r"CL_MEM_OBJECT_ALLOCATION_FAILURE",
    r"\bEL0004\b|Memory_Allocation_Failure|ACL_ERROR_RT_MEMORY_ALLOCATION|error code is 207001",
    r"Failed to allocate resource ?\[\w*Memory\w*\]|Failed to apply for memory",
    r"PT_DEVMEM Allocation failed",
    r"Failed to CUDA (?:calloc|malloc)(?! host memory pool limit)",
    r"(?:RESOURCE_EXHAUSTED|Resource exhausted|ResourceExhaustedError): .{0,400}?"
    r"(?:[Oo]ut of memory(?! in memory space (?!hbm))|allocat|\bhbm\b|HBM|\bOOM\b|to reserve)",
    r"OOM when allocating tensor|Ran out of memory in memory space hbm|Exceeded hbm capacity",
    r"Failed to allocate \d+ bytes for new constant|Failed to allocate request for [\d.]+ ?\w+",
    # raised while the allocator writes its own message of the shortage
    r"NVML_SUCCESS == .{0,80}INTERNAL ASSERT FAILED.{0,80}CUDACachingAllocator",
)
_ALLOCATOR_HEADS = (
    r"memory allocation failed with OOM",
    r"Allocator \(\S+\) ran out of memory",
    r"failed to alloc(?:ate)? [\d.]+\w* \(\d+ bytes\) from device",
)
_HOST_HEADS = (
    r"DefaultCPUAllocator: (?:can't allocate memory|not enough memory)",
    r"std::bad_alloc\b",
    r"^(?:\S*: )?MemoryError(?:: .*)?$|ArrayMemoryError|ArrowMemoryError",
    r"Unable to allocate [\d.]+ [KMGTP]?i?B for an array",
    r"[Cc]annot allocate memory",
    r"memory allocation of \d+ bytes failed|fatal error: runtime: out of memory",
    r"virtual memory exhausted",
    r"NCCL WARN .{0,80}Failed to malloc \d+",
    r"^(?:\S{1,60}: )?(?:[Ff]atal(?: error)?: |error: )?[Oo]ut of memory\b",
)
_KILLER_HEADS = (
    # kernel, systemd, earlyoom
    r"[Oo]ut of memory: Kill(?:ed)? process|Memory cgroup out of memory",
    r"invoked oom-killer|oom-kill:constraint=|oom_reaper: reaped process",
    r"killed by the OOM killer|result 'oom-kill'|systemd-oomd killed|low memory! .{0,80}SIG",
    # schedulers
    r"Detected \d+ oom[-_]kill event|oom[-_]kill event\(?s?\)?",
    r"tasks? [\d,-]+: Out Of Memory|[Ee]xceeded (?:job |step )?memory limit",
    r"job killed: (?:v?mem|pmem) \d+\w* exceeded limit|TERM_MEMLIMIT|reaching LSF memory usage",
    r"\bOOMKilled\b|\bOOM Killed\b|low on resource: memory",
    # Ray and its raylet
    r"\b[1-9]\d* Workers? \(tasks / actors\) killed due to memory pressure",
    r"killed due to the node running low on memory|NODE_OUT_OF_MEMORY",
    r"More than \d+% of the memory on node",
)
#: Heads that are certain only in the line of an exception.
_EXCEPTION_HEADS = (
    r"(?i:\bout of (?:\w+ )?memory\b(?! in memory space (?!hbm))|\bmemory exhausted\b)",
    r"(?i:\binsufficient (?:\w+ )?memory\b)",
    r"(?i:\bnot enough (?:\w+ ){0,2}memory\b|\bmemory allocation (?:error|fail\w+))",
    r"(?i:\b(?:unable|failed|could not|cannot|can't) (?:to )?allocate\b.{0,60}\bmemory\b)",
    r"\bOOM\b|No executable batch size found",
)
#: A whole message with its figure. No source code has one, even where lines of several ranks ran
#: into each other.
WITH_FIGURE = re.compile(r"out of memory\. Tried to allocate [\d.]+ [KMGT]i?B")


def _any_of(*expressions: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{text})" for text in expressions))


_HEAD = _any_of(*_DEVICE_HEADS, *_ALLOCATOR_HEADS, *_HOST_HEADS, *_KILLER_HEADS)
_EXCEPTION_HEAD = _any_of(*_EXCEPTION_HEADS)
_ALLOCATOR = _any_of(*_ALLOCATOR_HEADS)
#: Advice, arguments and guesses, when they stand before a head.
_HINT = re.compile(
    r"(?i)\b(?:avoid\w*|prevent\w*|in case of|if (?:you|your|it|the|there)|may|might|possib\w+"
    r"|potential\w*|likely|risk of|unrecognized arguments|error: argument|usage:)\b"
)
#: Memory of another kind: pinned for the network, shared between processes, of a kernel.
_OTHER_MEMORY = re.compile(
    r"(?i)\bibv_|verbs|mem(?:ory )?lock|locked memory|\bmlock|io_uring|queue pair|\bqp\b"
    r"|/dev/shm|\bshm\b|shared memory|out of resource"
)
#: A size that no configuration asks for: the number itself was damaged.
_ABSURD = re.compile(r"Tried to allocate more than 1EB")
_HANDLED_BEFORE = re.compile(
    r"(?i)\b(?:caught|catching|retry\w*|retried|skipp?\w*|recover\w*|handled|ignor(?:ed?|ing)"
    r"|fall(?:ing|s)? ?back|surviv\w+|tolerat\w+|plan failed with|autotun\w+|prob(?:e|ing)\b)\b"
)
_HANDLED_AFTER = re.compile(
    r"(?i)(?:[,;.:!()-]|\band\b) *(?:so |now |then |will )*"
    r"(?:retry(?:ing)?\b(?! (?:failed|limit))|skipp(?:ing|ed)|ignor(?:ing|ed)|falling back"
    r"|recover(?:ing|ed)|trying again|reducing|lowering|halving|continuing)\b"
    r"|\bwill be (?:decreased|reduced|lowered|halved|retried|skipped)\b|\bis not a failure\b"
)
_WARNING_LEVEL = re.compile(
    r"\b(?:WARNING|WARN|INFO|DEBUG|NOTICE)\b|\b\w*Warning:|^\[?[WI](?:\d{4})? |^\[[WI]\d{3,4} "
)
_NCCL = re.compile(r"NCCL WARN")


def weight_of(text: str, *, is_exception: bool = False) -> Weight:
    """How much one line says that memory ran out.

    Args:
        text: The line, without what launchers put before it.
        is_exception: Whether it is the line of an exception, or of a program that died.
    """
    head = _HEAD.search(text)
    if head is None and is_exception:
        head = _EXCEPTION_HEAD.search(text)
    if head is None or _ABSURD.search(text):
        return Weight.NONE
    before = text[: head.end()]
    if _HINT.search(before) or _OTHER_MEMORY.search(before):
        return Weight.NONE
    if _HANDLED_BEFORE.search(before) or _HANDLED_AFTER.search(text, head.end()):
        return Weight.MENTION
    if _ALLOCATOR.search(text):
        return Weight.WARNING
    if _WARNING_LEVEL.search(before) and not _NCCL.search(before):
        return Weight.MENTION
    return Weight.FATAL
