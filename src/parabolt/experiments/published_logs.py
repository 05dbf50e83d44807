"""Imports the published result files of the BoLT experiments into a store.

A file is JSON (with bare `Infinity` and `NaN`): `problem`, `acq_fn`, `prior_mean`, `noise_std`,
`iterations`, `initial_random_samples`, and per trial `seed`, `candidates` (encoded rows, the ZeRO
stage as its ordinal), `seen_y` (observed throughput), `seen_c` (slack) and `rec_true_all`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from parabolt.documents import read_bytes
from parabolt.errors import ParaboltError, TableError
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.run import Run
from parabolt.experiments.run_key import RunKey

if TYPE_CHECKING:
    from pathlib import Path

    from parabolt.outcome import FloatArray
    from parabolt.problems.problem import Problem


def read_published(path: Path, problem: Problem) -> list[Run]:
    """The runs of a published result file, one per trial.

    What a run evaluated is looked up in `problem`'s table, so that noiseless outcomes are those of
    the table; the observed throughput is the file's. Its label is the file's method with
    `(published)`, so that it stands beside own runs of the same method.

    Args:
        path: The file.
        problem: The problem that it says it is about.

    Raises:
        TableError: If the file isn't such a file, is about another problem, or contradicts the
            table.
    """
    try:
        document = json.loads(read_bytes(path))
        if document["problem"] != problem.name:
            raise TableError(
                f"{path}: expected runs on {problem.name}, got {document['problem']!r}"
            )
        return [_run(document, trial, problem) for trial in document["trials"]]
    except ParaboltError as error:
        raise TableError(f"{path}: {error}") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TableError(f"{path} is no published result file: {error!r}") from error


def _run(document: dict[str, Any], trial: dict[str, Any], problem: Problem) -> Run:
    encoded = np.array(trial["candidates"], dtype=np.float64)
    observed = np.array(trial["seen_y"], dtype=np.float64)
    n_initial = len(observed) - document["iterations"]
    outcomes = problem.evaluate_many(encoded)
    slack = np.array(trial["seen_c"], dtype=np.float64)
    _check_slack(slack, outcomes.slack, trial["seed"])
    prior = "+prior" if document.get("prior_mean") else ""
    key = RunKey.of(
        problem,
        f"{document['acq_fn']}{prior} (published)",
        trial["seed"],
        Protocol(
            n_evaluations=document["iterations"],
            n_initial=document["initial_random_samples"],
            noise_std=document["noise_std"],
        ),
    )
    step_time_s = np.full(len(observed), np.nan)
    step_time_s[n_initial:] = trial["time_seconds"] / document["iterations"]
    return Run(
        key=replace(key, parabolt=""),  # other code made it
        optimum=problem.optimum.value,
        n_initial=n_initial,
        configurations=problem.instance.encoding.configurations(encoded),
        observed=observed,
        outcomes=outcomes,
        recommended=_recommended(trial, len(observed), n_initial),
        step_time_s=step_time_s,
        n_failed_fits=np.full(len(observed), -1),
        was_shortened=np.zeros(len(observed), dtype=bool),
        start_s=np.full(len(observed), np.nan),
        end_s=np.full(len(observed), np.nan),
        n_gpus=problem.instance.cluster.n_gpus,
    )


def _check_slack(published: FloatArray, ours: FloatArray, seed: int) -> None:
    wrong = ~(np.abs(published - ours) <= 1e-6)
    if wrong.any():
        t = int(np.argmax(wrong))
        raise TableError(
            f"seed {seed}, evaluation {t}: expected the table's slack {ours[t]:.8f}, "
            f"got {published[t]:.8f}"
        )


def _recommended(trial: dict[str, Any], n: int, n_initial: int) -> FloatArray:
    recommended = np.full(n, np.nan)
    values = np.array(trial.get("rec_true_all") or [], dtype=np.float64)
    if len(values) == n - n_initial:
        recommended[n_initial:] = np.where(np.isfinite(values), values, 0.0)
    return recommended
