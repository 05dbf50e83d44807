"""How far a study is: what a person wants to know of long work."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from parabolt.documents import read_bytes
from parabolt.files import write_whole

if TYPE_CHECKING:
    from pathlib import Path

    from parabolt.experiments.run import Run

_WRITE_EVERY_S = 1.0


@dataclass(frozen=True)
class StudyProgress:
    """How far a study is.

    Attributes:
        n_total: Runs in all.
        n_done: Finished runs, those of earlier sessions included.
        n_failed: Runs that failed for good in this session.
        n_retried: Runs that were tried again because a worker died.
        n_running: Runs under way.
        elapsed_s: Seconds since this session started.
        remaining_s: Expected seconds to the end; NaN before the first run has ended.
        leaders: Problem to the optimizer with the smallest mean final regret so far.
        notices: What happened besides, in words.
    """

    n_total: int
    n_done: int
    n_failed: int = 0
    n_retried: int = 0
    n_running: int = 0
    elapsed_s: float = 0.0
    remaining_s: float = float("nan")
    leaders: dict[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()


class ProgressMeter:
    """Counts runs as they end, and keeps `progress.json` up to date about once a second.

    Args:
        folder: Directory of the study.
        n_total: Runs in all.
        n_before: Runs that were finished before.
        n_workers: Runs at the same time.
        notices: What happened before the runs, in words.
    """

    def __init__(
        self,
        folder: Path,
        n_total: int,
        n_before: int,
        n_workers: int,
        notices: tuple[str, ...] = (),
    ) -> None:
        self._folder = folder
        self._n_total, self._n_before, self._n_workers = n_total, n_before, n_workers
        self._notices = notices
        self._n_new = self._n_failed = self._n_retried = 0
        self._start = time.monotonic()
        self._written = float("-inf")
        self._regrets: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))

    def finished(self, run: Run, problem: str, *, n_attempts: int) -> None:
        """Counts a finished run; `problem` is what the problem is called among those of a study."""
        self._n_new += 1
        self._n_retried += n_attempts > 1
        best = np.max(run.outcomes.throughput, initial=0.0, where=run.outcomes.is_feasible)
        self._regrets[problem][run.key.optimizer].append(1.0 - best / run.optimum)

    def failed(self, *, n_attempts: int) -> None:
        """Counts a run that failed for good."""
        self._n_failed += 1
        self._n_retried += n_attempts > 1

    def read(self) -> StudyProgress:
        """How far it is now."""
        elapsed = time.monotonic() - self._start
        ended = self._n_new + self._n_failed
        left = self._n_total - self._n_before - ended
        return StudyProgress(
            n_total=self._n_total,
            n_done=self._n_before + self._n_new,
            n_failed=self._n_failed,
            n_retried=self._n_retried,
            n_running=min(self._n_workers, left),
            elapsed_s=elapsed,
            remaining_s=elapsed / ended * left if ended else float("nan"),
            leaders={
                problem: min(regrets, key=lambda name: (np.mean(regrets[name]), name))
                for problem, regrets in self._regrets.items()
            },
            notices=self._notices,
        )

    def write(self, *, is_last: bool = False) -> None:
        """Writes `progress.json`, unless it was written within the last second."""
        now = time.monotonic()
        if is_last or now - self._written >= _WRITE_EVERY_S:
            self._written = now
            write_whole(self._folder / "progress.json", json.dumps(asdict(self.read())).encode())


def read_progress(folder: Path) -> dict[str, Any]:
    """What `progress.json` said last; empty where there is none, or it isn't what is written."""
    try:
        found = json.loads(read_bytes(folder / "progress.json"))
    except (OSError, ValueError, RecursionError):
        return {}
    leaders = found.get("leaders") if isinstance(found, dict) else None
    if not isinstance(leaders, dict) or not all(isinstance(x, str) for x in leaders.values()):
        return {}
    return cast("dict[str, Any]", found)
