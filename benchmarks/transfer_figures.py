"""The figures of docs/transfer.md: what trials of other instances are worth, by split and method.

Usage: python benchmarks/transfer_figures.py FOLDER

Runs the studies benchmarks/studies/transfer_*.toml (resumed if FOLDER holds them) and writes their
tables into docs/transfer.md. Every problem counts the same: figures are means over seeds, then over
problems; the tests take a problem as one block.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import parabolt
from parabolt.analysis.comparison import holm
from parabolt.analysis.metrics import evaluations_to, group_runs, simple_regret
from parabolt.analysis.signed_ranks import signed_rank_p
from parabolt.experiments.run import Run
from parabolt.experiments.runner import run_study
from parabolt.experiments.store import RunStore
from parabolt.experiments.study import read_study
from parabolt.outcome import FloatArray

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "transfer.md"
SPLITS = ("instance", "model", "small")
#: Trials after which the regret is told, and shares of the optimum that count as close to it.
AFTER, CLOSE = (1, 5, 20), (0.05, 0.01)
REFERENCE = "parabolt"


def run_split(split: str, folder: Path) -> list[Run]:
    """All runs of one study."""
    study = read_study(ROOT / "benchmarks" / "studies" / f"transfer_{split}.toml")
    problems = [parabolt.load_problem(problem) for problem in study.problems]
    run_study(study, problems, folder / split)
    return list(RunStore(folder / split).load_all())


def regrets(runs: Sequence[Run], optimizer: str) -> FloatArray:
    """Mean simple regret in % of the optimum, by problem and number of trials: (problems, t)."""
    by_problem = [groups[optimizer] for groups in group_runs(runs).values()]
    return np.array(
        [
            np.mean([100.0 * simple_regret(run) / run.optimum for run in group], axis=0)
            for group in by_problem
        ]
    )


def trials_to(runs: Sequence[Run], within: float) -> str:
    """Share of the runs that came so close, and the median of the trials that it took."""
    counts = [evaluations_to(run, within=within) for run in runs]
    n_found = sum(count is not None for count in counts)
    median = np.median([np.inf if count is None else count for count in counts])
    shown = f"{median:g}" if np.isfinite(median) else f"> {len(runs[0])}"
    return f"{100.0 * n_found / len(runs):.0f} %, {shown}"


def table(runs: Sequence[Run]) -> str:
    """One line per method, least regret over all trials first, as Markdown."""
    by_name = {name: regrets(runs, name) for name in dict.fromkeys(r.key.optimizer for r in runs)}
    areas = {name: found.mean(axis=1) for name, found in by_name.items()}
    others = [name for name in areas if name != REFERENCE]
    raw = [signed_rank_p(areas[name] - areas[REFERENCE]) for name in others]
    p_values = dict(zip(others, holm(raw), strict=True))
    lines = [
        "| method | after 1 trial, % | after 5, % | after 20, % | within 5 %: runs, trials "
        "| within 1 %: runs, trials | p |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name in sorted(areas, key=lambda name: float(areas[name].mean())):
        own = [run for run in runs if run.key.optimizer == name]
        cells = [
            name,
            *(f"{by_name[name][:, n - 1].mean():.1f}" for n in AFTER),
            *(trials_to(own, within) for within in CLOSE),
            f"{p_values[name]:.2g}" if name in p_values else "",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(folder: Path) -> None:
    """Writes the tables of all splits."""
    text = PAGE.read_text(encoding="utf-8")
    for split in SPLITS:
        made = f"<!-- {split} -->\n\n{table(run_split(split, folder))}\n\n<!-- /{split} -->"
        marked = rf"<!-- {split} -->.*<!-- /{split} -->"
        text = re.sub(marked, made, text, flags=re.DOTALL)
    PAGE.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
