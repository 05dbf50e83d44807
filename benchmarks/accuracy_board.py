"""The accuracy board: the cost model against public measured runs, source by source, as Markdown.

Usage: python benchmarks/accuracy_board.py RUNS_CSV [--out docs/accuracy.md]

RUNS_CSV is a file as `measured_runs` describes it. Predictions are from specifications alone.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from measured_runs import MeasuredRun, read_runs
from parabolt.costmodel.predictor import CostModel
from parabolt.errors import ParaboltError

if TYPE_CHECKING:
    from parabolt.outcome import FloatArray

_INTRODUCTION = """# Accuracy on public runs

What the cost model predicts **from specifications alone**, before any trial, beside what was
measured in public runs of real training. Made by `python benchmarks/accuracy_board.py RUNS_CSV`
with 781 runs that were collected from the repositories and papers named in the first column.

- **bias**: median of measured over predicted step time; above 1, the prediction is too fast.
- **error**: mean of |predicted / measured - 1|.
- **order**: Spearman's rank correlation of predicted and measured FLOP/s of a GPU.
- **covered**: share of runs inside the 90 % interval of the step time.
- **memory**: runs that state a peak, and the error of the predicted one.
- **false alarms**: share of finished runs with P(out of memory) above 0.5, and above 0.1.

| source | runs | bias | error | order | covered | memory | false alarms |
|---|---|---|---|---|---|---|---|
"""


def main() -> None:
    """Prints the board, or writes it to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    runs, reasons = read_runs(options.runs)
    board = _INTRODUCTION + _rows(runs, reasons) + _left_out(reasons)
    if options.out:
        options.out.write_text(board, encoding="utf-8")
    else:
        print(board)


def predicted(run: MeasuredRun) -> FloatArray:
    """Figures (8,) of one run.

    Measured and predicted seconds, deviation of its logarithm, both peaks in GiB, P(OOM), FLOPs of
    a GPU, and whether it ran out of memory.
    """
    model = CostModel(run.instance)
    found = model.predict(run.configurations)
    s = model.resolved
    flops = 6.0 * s.n_layers * s.layer_parameters * s.tokens / s.n_gpus
    return np.array(
        [
            run.step_time_s, found.step_time_s[0], found.log_time_std[0], run.peak_memory_gib,
            found.peak_memory_gib[0], found.p_oom[0], flops, run.is_oom,
        ]
    )  # fmt: skip


def _rows(runs: list[MeasuredRun], reasons: dict[str, int]) -> str:
    groups: defaultdict[str, list[FloatArray]] = defaultdict(list)
    for run in runs:
        try:
            groups[run.source].append(predicted(run))
        except ParaboltError as error:
            reasons[str(error)] = reasons.get(str(error), 0) + 1
    rows = [*sorted(groups.items(), key=lambda item: -len(item[1]))]
    everything = [values for group in groups.values() for values in group]
    return "".join(_row(name, np.array(v)) for name, v in [*rows, ("all", everything)])


def _row(name: str, values: FloatArray) -> str:
    measured, time, log_std, peak, peak_predicted, risk, flops, is_oom = values.T
    timed, stated, finished = np.isfinite(measured), np.isfinite(peak), is_oom == 0
    error = np.log(time[timed] / measured[timed])
    covered = np.abs(error) < 1.6449 * log_std[timed]
    memory = "-"
    if stated.any():
        of_memory = np.abs(peak_predicted[stated] / peak[stated] - 1.0).mean()
        memory = f"{stated.sum()}: {of_memory:.1%}"
    order = "-"
    if timed.sum() > 2:
        speeds = (flops[timed] / measured[timed], flops[timed] / time[timed])
        order = f"{_spearman(*speeds):.2f}"
    alarms = f"{(risk[finished] > 0.5).mean():.0%}, {(risk[finished] > 0.1).mean():.0%}"
    return (
        f"| {name} | {timed.sum()} | {np.exp(-np.median(error)):.2f} | "
        f"{np.abs(np.expm1(error)).mean():.1%} | {order} | {covered.mean():.0%} | {memory} | "
        f"{alarms} |\n"
    )


def _spearman(a: FloatArray, b: FloatArray) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(a, b)[0])


def _left_out(reasons: dict[str, int]) -> str:
    lines = [f"- {n} runs: {reason}" for reason, n in sorted(reasons.items(), key=lambda r: -r[1])]
    return "\n".join(["", "Left out:", "", *lines, ""])


if __name__ == "__main__":
    main()
