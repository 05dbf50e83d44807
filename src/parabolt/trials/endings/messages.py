"""The messages by which failures other than lack of memory are known, line by line.

Sources of the facts: the messages of Python, PyTorch and its launchers, NCCL, gloo, HCCL, the
NVIDIA driver, Slurm, PBS, LSF, MPI, Ray, and the checks that Megatron-LM, torchtitan, DeepSpeed,
NeMo and their configuration libraries make of their settings. Lack of memory is in `memory`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from parabolt.frameworks.registry import rejections

if TYPE_CHECKING:
    from collections.abc import Sequence


def _any_of(expressions: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{text})" for text in expressions))


#: What launchers and schedulers say when a process of theirs has ended: never a reason.
_LAUNCHER = _any_of(
    [
        r"Sending process \d+ closing signal|failed \(exitcode: -?\d+\)|ChildFailedError",
        r"SignalException|[Dd]eath signal|torch[./]distributed[./]elastic[./](?!rendezvous)",
        r"^-- Process \d+ terminated with the following error|Process(?:Raised|Exited)Exception",
        r"CalledProcessError|exits with return code|sigkill_handler|Killing subprocess",
        r"^srun: |^slurmstepd[^ ]*: |^salloc: |^sbatch: |Job step aborted",
        r"task\(s\) (?:unfinished|exited)|Exited with exit code",
        r"^(?:mpirun|mpiexec|prterun|orterun)\b|Primary job +terminated|MPI_ABORT was invoked",
        r"BAD TERMINATION|EXIT CODE: \d+|KILLED BY SIGNAL",
        # torchrun's summary
        r"^\s*(?:(?:time|host|rank) {6}|exitcode {2}|error_file|traceback ): |^\[\d+\]:$",
        r"^[=-]{20,}$",
        r"^\S+ FAILED$|^Failures:$|<NO_OTHER_FAILURES>|Root Cause \(first",
        r"^pdsh@|ssh exited with exit code|^make: \*\*\*|command terminated with .{0,9}exit",
        r"Ray(?:Task|Actor)Error|ActorDiedError|WorkerCrashedError|actor (?:died|is dead)",
        r"worker died or was killed|Error executing job with overrides|Job entrypoint command",
    ]
)

#: A rank that gave up only because another one was lost, or because it was told to end.
_LOST_PEER = _any_of(
    [
        r"[Cc]onnection (?:was )?(?:closed|reset|refused)(?: by (?:remote )?peer)?",
        r"Software caused connection abort|Socket recv failed|socketProgress",
        r"remote process exited or there was a network error|ncclRemoteError",
        r"NCCL communicator was aborted|ncclCommAbort|communicator.{0,40}abort",
        r"Socket Timeout|[Bb]roken pipe|recvValue failed|failed to recv|sendBytes failed",
        r"Application timeout caused pair closure|DistNetworkError|DistStoreError|TCPStore",
        r"Rendezvous(?:Connection|Closed|Timeout)\w*Error",
        r"received (?:SIGTERM|signal 15)|Received (?:SIGTERM|15)|Terminated|KeyboardInterrupt",
        r"[Tt]erminating (?:task|job step)|CANCELLED AT|Killed by signal 15",
        r"[Tt]o avoid data inconsistency|taking the entire process down",
        r"instance of 'c10::Dist\w+Error'",
        r"BrokenPipeError|EOFError|killed by signal: (?:Terminated|Aborted|Hangup)",
    ]
)

#: A collective that waited for longer than its own time limit.
_COLLECTIVE_TIMEOUT = _any_of(
    [
        r"[Ww]atchdog caught collective operation timeout",
        r"[Cc]ollective operation timed? ?out|due to a collective timeout",
        r"WorkNCCL\(.*ran for \d+ milliseconds before timing out",
        r"[Ss]ome NCCL operations have failed or timed out|Timeout at NCCL work",
        r"Observed flight recorder dump signal",
        r"Timed out waiting \d+ms for (?:recv|send) operation",
        r"Timed out initializing process group|[Ss]tore.?based.?barrier.{0,80}[Tt]imed? ?out",
        r"wait timeout after \d+ms|monitoredBarrier.*timed out|failed to pass monitoredBarrier",
        r"[Ww]atchdog.*got stuck for \d+ seconds|Heartbeat monitor timed out|watchdog hang\b",
        r"EI0002|Notify register times? out|HCCL.{0,80}(?:times? out|timeout)",
    ]
)

#: A scheduler or `timeout` that ended the run at its time limit.
_TIME_LIMIT = _any_of(
    [
        r"CANCELLED AT .{0,60}DUE TO TIME LIMIT|^(?:slurmstepd|srun).{0,200}DUE TO TIME LIMIT",
        r"TERM_RUNLIMIT|reaching LSF run time limit",
        r"job killed: walltime \d+|walltime .{0,40}exceeded limit",
        r"[Jj]ob .{0,60}exceeded (?:its )?(?:wall|run|time)[ -]?(?:clock|time)?.{0,12}limit",
        r"^timeout: sending signal",
        r"DeadlineExceeded\b.{0,80}(?:[Jj]ob|[Pp]od)|active longer than specified deadline",
    ]
)

#: Hardware that failed, and places that were taken away.
_HARDWARE = _any_of(
    [
        r"[Uu]ncorrectable (?:ECC|NVLink)|ECC_UNCORRECTABLE|double[- ]bit ECC|NVLink.*error",
        r"fallen off the bus|GPU is lost|GPU_IS_LOST|Unable to determine the device handle",
        # application faults have other numbers
        r"\bXid \(PCI:[\da-fA-F:.]+\): (?:48|6[1-4]|74|79|92|9[45]|119|120|14[05]|149)\b",
        r"CUDA-capable device\(s\) is/are busy or unavailable|no CUDA-capable device",
        r"No CUDA GPUs are available|CUDA driver initialization failed|system not yet initialized",
        r"Found no NVIDIA driver|couldn't communicate with the NVIDIA driver",
        r"CUDA_ERROR_(?:NO_DEVICE|SYSTEM_NOT_READY|DEVICE_UNAVAILABLE)|library version mismatch",
        r"GPU hang|amdgpu.{0,80}(?:GPU reset|ring .{0,40}timeout)|HW Exception by GPU",
        r"NodeDiedError|Requested nodes are busy|received SISTER_EOF",
        r"DUE TO (?:NODE FAILURE|PREEMPTION|JOB REQUEUE)|Node failure on|\bNODE_FAIL\b",
        r"[Nn]ode \S{1,60} (?:is )?(?:went down|not responding|unreachable|was lost)",
        r"\b(?:is|was|has been|were|being) preempted\b",
        r"[Ss]pot.{0,40}(?:interrupt|reclaim|terminat)",
        r"[Ii]nstance.{0,60}(?:reclaim|preempt|being terminated)|\bEvicted\b",
    ]
)

#: The network between nodes, or a shared file system.
_NETWORK = _any_of(
    [
        r"No route to host|Network is (?:unreachable|down)|Connection timed out|Host is down",
        r"Temporary failure in name resolution|Name or service not known|gaierror",
        r"EADDRINUSE|[Aa]ddress already in use|Gloo connectFullMesh failed",
        r"client socket has (?:timed out|failed to connect)|\d+/\d+ clients joined",
        r"Rendezvous(?:Timeout|Connection)\w*Error",
        r"NET/IB ?: .{0,20}Got (?:completion|async)|mlx\d.{0,60}completion with error",
        r"ibv_\w+|transport retry counter exceeded",
        r"\blink (?:is )?down\b|NET/OFI.{0,80}(?:fail|error)|EI0006|[Gg]etting socket times? out",
        r"Stale file handle|Input/output error|Remote I/O error|endpoint is not connected",
    ]
)

#: The framework's parser refuses its arguments or its configuration file.
_USAGE = _any_of(
    [
        r": error: (?:unrecognized arguments|argument |ambiguous option|the following arguments)",
        r"[Uu]nrecognized (?:or misplaced )?(?:arguments|options)|No such option",
        r"Invalid value for '",
        r"error: Option '[^']{1,200}' is not accepted|Flags parsing error|HfArgumentParser: \[",
        r"Could not override|is not in struct|Config(?:Key|Attribute|Value|uration)?Error\b",
        r"MisconfigurationException|MissingMandatoryValue|ConfigCompositionException",
        r"ValidationError\b.*for \w+|^(?:omegaconf\.errors|hydra\.errors|dacite\.exceptions)\.",
        r"DeepSpeedConfigError|error: Parser key|got an unexpected argument",
    ]
)
#: The frameworks' own messages.
_REJECTION = _any_of(rejections())
#: How other programs refuse theirs: a check that failed, with words of refusal and a setting.
_CHECK = re.compile(
    r"^(?:[\w.]*\.)?(?:Assertion|Value|NotImplemented|Runtime|Type|Key|Config\w*|Invalid\w*)?"
    r"(?:Error|Exception)\b"
)
_REFUSED = re.compile(
    r"(?i)divisib|\bmultiple of\b|evenly|\bmust (?:be|divide|equal|have|not|provide|use|set)\b"
    r"|\bshould (?:be|equal)\b"
    r"|not (?:yet |currently )?(?:support|implement|compatible|allowed|equal|valid)|unsupported"
    r"|incompatib|can(?:not|'t| not) (?:be )?(?:used?|combined?|split|shard|partition|enabled?)"
    r"|does(?:n't| not) support|\bonly support|requires?\b|mutually exclusive|\binvalid\b"
    r"|!=|==|%|[<>]=?|\bexceeds?\b|(?:smaller|bigger|greater|larger|less|fewer|more) than"
    r"|too (?:many|few)"
)
_SETTING = re.compile(
    r"(?i)parallel|world.?size|\b(?:tp|pp|cp|dp|ep|sp|vp|etp|hsdp|fsdp)\b|[tpcde]p_(?:size|degree)"
    r"|micro.?batch|global.?batch|batch.?size|train_batch|grad\w*.accum|num(?:ber)?.?(?:of.?)?layers"
    r"|n_layers|layers per|attention.?heads|\bheads?\b|query.?groups|hidden.?size|ffn|vocab"
    r"|seq(?:uence)?.?len|virtual|interleav|stages?\b|zero|shard|degree|\bmesh\b"
    r"|\bfp(?:4|8|16)\b|\bbf16\b|precision|n(?:um)?_?gpus|number of gpus|recomput|checkpointing"
    r"|schedule|overlap|bucket|\bexperts?\b"
)

#: The line of an exception without its traceback, or of a program that died.
_PYTHON_EXCEPTION = _any_of(
    [
        r"^(?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*)?(?:Error|Exception|Interrupt|Exit|Expired)(?:: .*|:)?$",
        r"^(?:[a-z_]\w*\.)+(?:[A-Z]\w*|\w*error|timeout): ",
    ]
)
_DEATH = _any_of(
    [
        r"\bAssertion\b.{0,200}\bfailed|device-side assert\b|INTERNAL ASSERT FAILED",
        r"[Ss]egmentation fault|Fatal Python error|core dumped|SIGSEGV|SIGBUS|[Bb]us error",
        r"terminate called after throwing|\bwhat\(\):|watchdog thread terminated with exception",
        r": command not found$|can't open file|unrecognized arguments|: error: argument",
        r"[Uu]ncorrectable ECC|fallen off the bus|unhandled (?:cuda|system) error",
        r"Memory access fault by GPU|HSA_STATUS_ERROR",
    ]
)

#: A line that complains, without being certain to be what ended the program.
_COMPLAINT = _any_of(
    [
        r"\b(?:ERROR|FATAL|CRITICAL)\b",
        r"^(?:[\w./-]+: )*(?:[Ee]rror|[Ff]atal)(?: error)?: ",
        r"No such file or directory|No space left on device|Permission denied",
        r"\bXid\b.*\d|NVLink.*error|NCCL WARN",
    ]
)
#: An error that says that the device failed at something, and not at what: a further one does.
_SYMPTOM = _any_of(
    [r"ACL stream synchronize failed|Inner error is reported as above|NPU function error: "]
)
#: A scheduler's command that failed before it started anything.
_NOT_LAUNCHED = re.compile(r"^(?:srun|sbatch|salloc): error: (?!\S+: tasks? )")


def is_exception(text: str) -> bool:
    """Whether a line is the message of an exception, or of a program that died."""
    return is_python_exception(text) or bool(_DEATH.search(text))


def is_python_exception(text: str) -> bool:
    """Whether a line is the message of a Python exception."""
    return bool(_PYTHON_EXCEPTION.search(text))


def is_usage(text: str) -> bool:
    """Whether a parser refuses arguments or settings."""
    return bool(_USAGE.search(text))


def is_complaint(text: str) -> bool:
    """Whether a line complains of something that may have ended the program."""
    return bool(_COMPLAINT.search(text)) or is_not_launched(text)


def is_not_launched(text: str) -> bool:
    """Whether the scheduler's own command failed."""
    return bool(_NOT_LAUNCHED.search(text))


def is_launcher(text: str) -> bool:
    """Whether a launcher or scheduler only says that a process of its own has ended."""
    return bool(_LAUNCHER.search(text)) and not is_not_launched(text)


def is_lost_peer(text: str) -> bool:
    """Whether an error only says that another rank was lost, or that the job was ended."""
    return bool(_LOST_PEER.search(text))


def is_collective_timeout(text: str) -> bool:
    """Whether a line says that a collective hung."""
    return bool(_COLLECTIVE_TIMEOUT.search(text))


def is_time_limit(text: str) -> bool:
    """Whether a line says that the run was ended at its time limit."""
    return bool(_TIME_LIMIT.search(text))


def is_hardware(text: str) -> bool:
    """Whether a line says that hardware failed, or that the place of the run was taken away."""
    return bool(_HARDWARE.search(text))


def is_symptom(text: str) -> bool:
    """Whether an error leaves it to another one to say what happened."""
    return bool(_SYMPTOM.search(text))


def is_network(text: str) -> bool:
    """Whether a line says that the network or a shared file system failed."""
    return bool(_NETWORK.search(text))


def is_rejection(text: str, source: str = "") -> bool:
    """Whether an error says that the program does not accept its settings.

    Args:
        text: The message of the error.
        source: The source line that raised it, which is all that a bare assertion tells.
    """
    if _USAGE.search(text) or _REJECTION.search(text):
        return True
    if not _CHECK.search(text):
        return False
    said = f"{text} {source}" if text.rstrip(": ").endswith("AssertionError") else text
    return bool(_REFUSED.search(said)) and bool(_SETTING.search(said))
