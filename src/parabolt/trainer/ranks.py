"""Ranks as forked processes of one machine, each with a log of its own.

Forking after the imports makes a rank cost milliseconds; torchrun would import PyTorch once for
each rank and once for itself. The first rank that fails ends the others.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def run_ranks(n_ranks: int, work: Callable[[int], None], log_folder: Path | None) -> int:
    """Runs `work(rank)` in a process per rank.

    Args:
        n_ranks: Ranks.
        work: What a rank does.
        log_folder: Where `rank-<rank>.log` go; None leaves the output where it is.

    Returns:
        0 if all ranks succeeded, otherwise the exit code of the first that failed: 128 plus the
        signal if it was killed.
    """
    ranks: dict[int, int] = {}
    for rank in range(n_ranks):
        process = os.fork()
        if process == 0:
            _be_rank(rank, work, log_folder)
        ranks[process] = rank
    first_failure = 0
    while ranks:
        process, status = os.wait()
        rank = ranks.pop(process)
        code = os.waitstatus_to_exitcode(status)
        if code and not first_failure:
            first_failure = code if code > 0 else 128 - code
            ending = f"exit code {code}" if code > 0 else f"signal {signal.Signals(-code).name}"
            sys.stderr.write(f"rank {rank} failed first, with {ending}; ending the others\n")
            for other in ranks:
                os.kill(other, signal.SIGKILL)
    return first_failure


def _be_rank(rank: int, work: Callable[[int], None], log_folder: Path | None) -> None:
    """Does the work and ends the process, whatever happens."""
    code = 1
    try:
        if log_folder is not None:
            log = os.open(Path(log_folder) / f"rank-{rank}.log", os.O_WRONLY | os.O_CREAT, 0o644)
            os.dup2(log, 1)
            os.dup2(log, 2)
        work(rank)
        code = 0
    except BaseException:  # noqa: BLE001 - the process ends here, and its log says why
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
