"""What single lines say of memory."""

import pytest

from parabolt.trials.endings.memory import Weight, weight_of


@pytest.mark.parametrize(
    ("line", "weight"),
    [
        ("CUDA out of memory. Tried to allocate 2.00 GiB", Weight.FATAL),
        ("CUDA out of memory. Set expandable_segments:True to avoid fragmentation.", Weight.FATAL),
        ("CUDA out of memory. Please try reducing the batch size.", Weight.FATAL),
        ("OutOfMemoryError: CUDA out of memory", Weight.FATAL),
        ("java.lang.OutOfMemoryError: Java heap space", Weight.FATAL),
        ("caught CUDA out of memory", Weight.MENTION),
        ("skipping batch 3: CUDA out of memory", Weight.MENTION),
        ("CUDA out of memory, retrying with batch 4", Weight.MENTION),
        ("CUDA out of memory. Falling back to eager.", Weight.MENTION),
        ("CUDA out of memory; retry failed", Weight.FATAL),
        ("WARNING: CUDA out of memory", Weight.MENTION),
        ("INFO CUDA out of memory", Weight.MENTION),
        ("set this to avoid CUDA out of memory", Weight.NONE),
        ("if you see CUDA out of memory, lower it", Weight.NONE),
        ("this may end in CUDA out of memory", Weight.NONE),
        ("Allocator (GPU_0_bfc) ran out of memory trying to allocate 2GiB", Weight.WARNING),
        (
            "failed to allocate 7.35G (7889485824 bytes) from device: hipError_t(1002)",
            Weight.WARNING,
        ),
        ("NCCL WARN Cuda failure 2 'out of memory'", Weight.FATAL),
        ("NCCL WARN Cuda failure 1 'invalid argument'", Weight.NONE),
        ("ibv_create_qp failed with error Cannot allocate memory", Weight.NONE),
        ("fork: Cannot allocate memory", Weight.FATAL),
        ("fork: retry: Resource temporarily unavailable", Weight.NONE),
        ("Failed to CUDA malloc host memory pool limit", Weight.NONE),
        ("0 Workers (tasks / actors) killed due to memory pressure (OOM)", Weight.NONE),
        ("10 Workers (tasks / actors) killed due to memory pressure (OOM)", Weight.FATAL),
        ("rocblas_status_memory_error", Weight.FATAL),
        ("peak memory 20 GiB, reserved 22 GiB", Weight.NONE),
        ("RESOURCE_EXHAUSTED: Quota exceeded", Weight.NONE),
        ("Memory cgroup out of memory: Killed process 3", Weight.FATAL),
        ("out of shared memory", Weight.NONE),
    ],
)
def test_weight_of_a_line(line, weight):
    assert weight_of(line) is weight


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: kernel image: out of memory",
        "ValueError: not enough GPU memory for the cache",
        "RuntimeError: unable to allocate 4 GiB of pinned memory",
        "TrainingFailed: OOM on rank 3",
        "RuntimeError: memory allocation failure",
        "RuntimeError: insufficient memory",
    ],
)
def test_exceptions_may_say_it_in_other_words(line):
    assert weight_of(line, is_exception=True) is Weight.FATAL
    assert weight_of(line) is Weight.NONE


def test_shared_memory_of_an_exception_is_another_memory():
    line = "RuntimeError: DataLoader worker is killed: out of shared memory, raise /dev/shm"
    assert weight_of(line, is_exception=True) is Weight.NONE
