"""One attempt at a trial: launch, watch, end, and decide what it gave."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from parabolt.errors import LaunchError, SpecError
from parabolt.frameworks.log_follower import LogFollower
from parabolt.frameworks.measurements import Measurements, ReportError
from parabolt.outcome import OOM_MARGIN, Outcome, Source, Status
from parabolt.trials.endings.ending import Ending, rank_of, read_logs
from parabolt.trials.endings.verdict import Verdict, decide
from parabolt.trials.launchers.launcher import (
    LOG_VARIABLE,
    TRIAL_VARIABLE,
    Exit,
    Launch,
    StartError,
)
from parabolt.trials.measurements import REPORT_VARIABLE, ReportReader, Statistics

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from parabolt.frameworks.log_format import LogFormat
    from parabolt.space.configuration import Configuration
    from parabolt.trials.launchers.launcher import Job, Launcher
    from parabolt.trials.spec.spec import Spec

#: Seconds between two looks at a running trial.
_POLL_S = 0.25
#: Beginnings of inherited variables that are kept as part of the evidence. Others may be secrets.
_KEPT = (
    "CUDA_", "NCCL_", "OMP_", "MKL_", "TORCH_", "PYTORCH_", "GLOO_", "HIP_", "ROCR_", "MASTER_",
    "PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "PARABOLT_",
)  # fmt: skip


@dataclass(frozen=True)
class Attempt:
    """What an attempt gave.

    Attributes:
        verdict: How it ended, and why.
        outcome: The same as an outcome.
        statistics: Statistics; None unless it finished.
        saved_s: Estimated running time that stopping it saved, in seconds.
        measurements: What was read of its report or logs; None if it didn't start.
    """

    verdict: Verdict
    outcome: Outcome
    statistics: Statistics | None = None
    saved_s: float = 0.0
    measurements: Measurements | None = None


class AttemptRunner:
    """Runs attempts of a spec with a launcher.

    Args:
        spec: What to run.
        launcher: Where.
        needs_memory: Whether an attempt without reported memory is a failure, as in a sweep.
        watch: Called with the timed steps so far at each look at a running attempt.
    """

    def __init__(
        self,
        spec: Spec,
        launcher: Launcher,
        *,
        needs_memory: bool = False,
        watch: Callable[[Sequence[float], float], None] | None = None,
    ) -> None:
        self.spec = spec
        self.launcher = launcher
        self._needs_memory = needs_memory
        self._watch = watch

    def run(
        self,
        configuration: Configuration,
        folder: Path,
        *,
        stops: Callable[[Sequence[float]], bool] | None = None,
    ) -> Attempt:
        """Runs one attempt.

        Args:
            configuration: What to try.
            folder: The attempt's own folder, absolute; it must not exist.
            stops: Asked with the timed steps so far, whether to stop.

        Raises:
            LaunchError: If nothing can be launched at all.
        """
        start = time.monotonic()
        try:
            launch = self._prepare(configuration, folder)
            job = self._start(launch)
        except (StartError, SpecError) as fault:
            verdict = Verdict(Status.CRASHED, str(fault))
            return Attempt(verdict, _outcome(self.spec, verdict, None, 0.0, ()))
        except OSError as error:
            raise LaunchError(f"cannot write to {folder}: {error.strerror}") from error
        reader = _Reader(self.spec, launch)
        try:
            exit_, ended_by = self._watch_job(job, reader, launch, stops)
        finally:
            job.kill()
        wall_time_s = time.monotonic() - start
        return self._judge(launch, exit_, ended_by, wall_time_s)

    def _start(self, launch: Launch) -> Job:
        """Starts a command; an interrupt in the middle of it leaves nothing running."""
        try:
            return self.launcher.start(launch)
        except KeyboardInterrupt:
            self.launcher.end_leftovers(launch.folder)
            raise

    def _prepare(self, configuration: Configuration, folder: Path) -> Launch:
        launch = launch_of(self.spec, configuration, folder)
        launch.log_folder.mkdir(parents=True)
        added = {name for name, _ in self.spec.environment}
        kept = {k: v for k, v in launch.environment.items() if k in added or k.startswith(_KEPT)}
        _write_json(folder / "command.json", list(launch.arguments))
        _write_json(folder / "environment.json", dict(sorted(kept.items())))
        return launch

    def _watch_job(
        self,
        job: Job,
        reader: _Reader,
        launch: Launch,
        stops: Callable[[Sequence[float]], bool] | None,
    ) -> tuple[Exit, str]:
        """Waits for the end: how it came, and whether `itself`, the `limit` or we `stopped` it."""
        while (exit_ := job.wait(_POLL_S)) is None:
            steps = reader.timed_steps()
            if self._watch is not None:
                self._watch(steps, job.running_time_s)
            if stops is not None and stops(steps):
                job.kill()
                return job.wait(_POLL_S) or Exit(), "stopped"
            if job.running_time_s > launch.time_limit_s:
                job.kill()
                return job.wait(_POLL_S) or Exit(), "limit"
        return exit_, "itself"

    def _judge(self, launch: Launch, exit_: Exit, ended_by: str, wall_time_s: float) -> Attempt:
        trial = self.spec.trial
        reader = _Reader(self.spec, launch)  # anew: a requeued job began its report once more
        reader.finish()
        statistics, fault = None, reader.fault
        if fault is None:
            try:
                statistics = self._statistics(reader.measurements)
            except ReportError as error:
                fault = str(error)
        steps = reader.timed_steps()
        ending = Ending(
            exit_code=exit_.exit_code,
            logs=read_logs(launch.log_folder),
            scheduler_state=exit_.scheduler_state,
            scheduler_reason=exit_.scheduler_reason,
            hit_time_limit=ended_by == "limit",
            was_stopped=ended_by == "stopped" and bool(steps),
            n_host_oom_kills=exit_.n_host_oom_kills,
            report_fault=fault,
            has_steps=bool(reader.measurements.step_times_s),
        )
        verdict = decide(ending)
        saved_s = 0.0
        if verdict.status is Status.STOPPED:
            saved_s = (trial.timed_steps - len(steps)) * sum(steps) / len(steps)
        if verdict.status is not Status.OK:
            statistics = None
        outcome = _outcome(self.spec, verdict, statistics, wall_time_s, steps)
        return Attempt(verdict, outcome, statistics, saved_s, reader.measurements)

    def _statistics(self, measurements: Measurements) -> Statistics:
        """The statistics of a finished attempt.

        Raises:
            ReportError: If there is too little, or something that cannot be.
        """
        trial = self.spec.trial
        statistics = Statistics.of(
            measurements, n_warmup=trial.warmup_steps, n_timed=trial.timed_steps
        )
        if self._needs_memory and not statistics.peak_memory_per_gpu_gib:
            raise ReportError("no peak memory was reported, and a table needs it")
        for rank, gib in sorted(measurements.peak_memory_gib.items()):
            if gib > self.spec.memory_gib:
                raise ReportError(
                    f"rank {rank}: a peak of {gib:.4g} GiB in a GPU of {self.spec.memory_gib:g} "
                    f"GiB cannot be; try [trial] memory_gib, or the unit, of the line "
                    f"{measurements.memory_lines[rank].strip()[:200]!r}"
                )
        return statistics


def launch_of(spec: Spec, configuration: Configuration, folder: Path) -> Launch:
    """What is run for a configuration, with its files in `folder` (absolute); nothing is written.

    Raises:
        SpecError: If the spec's framework can't express the configuration.
    """
    log_folder, report = folder / "logs", folder / "report.jsonl"
    own = {
        "trial_dir": folder,
        "log_dir": log_folder,
        "report": report,
        "steps": spec.trial.steps,
        "warmup_steps": spec.trial.warmup_steps,
        "timed_steps": spec.trial.timed_steps,
    }
    values = spec.values(configuration, own)
    return Launch(
        arguments=spec.arguments(configuration, own),
        variables={
            **{name: template.fill(values)[0] for name, template in spec.environment},
            REPORT_VARIABLE: str(report),
            LOG_VARIABLE: str(log_folder),
            TRIAL_VARIABLE: str(folder),
        },
        folder=folder,
        log_folder=log_folder,
        working_folder=spec.folder / spec.launcher.working_directory,
        time_limit_s=spec.trial.time_limit_s,
    )


class _Reader:
    """Reads the measurements of an attempt, from its report or from its logs."""

    def __init__(self, spec: Spec, launch: Launch) -> None:
        self._spec, self._launch = spec, launch
        self._parser = spec.trial.parser()
        self.measurements = Measurements()
        self.fault: str | None = None
        self._report = ReportReader(launch.folder / "report.jsonl", self.measurements)
        self._logs: dict[Path, LogFollower] = {}

    def timed_steps(self) -> list[float]:
        """Seconds of the timed steps so far; empty once the measurements can't be used."""
        self._read()
        try:
            steps = self.measurements.timed_steps_s(self._spec.trial.warmup_steps)
        except ReportError:
            return []
        return [] if self.fault else steps[: self._spec.trial.timed_steps]

    def finish(self) -> None:
        """Reads all there is, after the end."""
        self._read(is_over=True)

    def _read(self, *, is_over: bool = False) -> None:
        if self.fault is not None:
            return
        try:
            if self._parser is None:
                self._report.read()
            else:
                self.measurements = self._read_logs(self._parser, is_over=is_over)
        except ReportError as fault:
            self.fault = str(fault)
        except (OSError, ValueError, ArithmeticError, RecursionError) as error:
            # Whatever a program prints, the search goes on.
            self.fault = f"unreadable measurements: {type(error).__name__}: {error}"

    def _read_logs(self, parser: LogFormat, *, is_over: bool) -> Measurements:
        folder, everything = self._launch.log_folder, Measurements()
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            if path not in self._logs:
                rank = rank_of(path, folder) or 0
                self._logs[path] = LogFollower(path, parser, rank, self._spec.instance)
            log = self._logs[path]
            log.end() if is_over else log.read()
            everything.merge(log.measurements())  # a launcher may show again what a rank's log has
        return everything


def _outcome(
    spec: Spec,
    verdict: Verdict,
    statistics: Statistics | None,
    wall_time_s: float,
    steps: Sequence[float],
) -> Outcome:
    """The outcome. Only `ok` and `oom` carry a memory margin; only `ok` and `stopped` a speed."""
    if verdict.status is Status.OOM:
        return Outcome(
            Status.OOM,
            peak_memory_gib=float("inf"),
            memory_margin=OOM_MARGIN,
            wall_time_s=wall_time_s,
        )
    if verdict.status is Status.STOPPED:
        return Outcome(
            Status.STOPPED,
            throughput=len(steps) / sum(steps),
            wall_time_s=wall_time_s,
            throughput_source=Source.MEASURED,
        )
    if statistics is None:
        return Outcome(verdict.status, wall_time_s=wall_time_s)
    peak = statistics.peak_memory_gib
    is_known = peak > 0.0
    return Outcome(
        Status.OK,
        throughput=statistics.throughput,
        peak_memory_gib=peak,
        memory_margin=peak / spec.memory_gib - 1.0,
        wall_time_s=wall_time_s,
        throughput_source=Source.MEASURED,
        memory_source=Source.MEASURED if is_known else Source.NONE,
    )


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
