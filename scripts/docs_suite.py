"""Puts the grid on the suite `uscale` into docs/grid.md: `python scripts/docs_suite.py [STORE]`.

STORE is a finished directory of benchmarks/studies/uscale.toml; it is packed into
docs/data/uscale.parquet first. The tables are made from that file and the published grid.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from parabolt.analysis.comparison import holm
from parabolt.analysis.leaderboard import leaderboard
from parabolt.analysis.suite_scores import compare_over_problems, problem_scores, suite_scores
from parabolt.experiments.packed import pack_store, published_files, read_packed
from parabolt.problems.registry import load_problem
from parabolt.problems.suites import SUITES
from parabolt.tables.sources import USCALE, load_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from parabolt.analysis.leaderboard import Score
    from parabolt.analysis.suite_scores import ProblemScore
    from parabolt.experiments.run import Run

DOCS = Path(__file__).parents[1] / "docs"
PACKED = DOCS / "data" / "uscale.parquet"
REFERENCE = "parabolt"


def suite_table(runs: Sequence[Run]) -> str:
    """Means over the problems of the suite, least regret first, as Markdown."""
    n_candidates = {name: len(load_problem(name).space) for name in SUITES["uscale"]}
    scores = problem_scores(runs, n_candidates)
    p_values = against_reference(scores)
    failed = failed_percent(leaderboard(runs))
    lines = [
        "| optimizer | final regret, % | area, % | within 1 % | until then, % | failed, % | p |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for score in suite_scores(scores):
        interval = f"[{score.regret_low_percent:.2f}, {score.regret_high_percent:.2f}]"
        p = p_values.get(score.optimizer)
        lines.append(
            f"| {score.optimizer} | {score.regret_percent:.2f} {interval} "
            f"| {score.area_percent:.1f} | {100.0 * score.close_share:.0f} % "
            f"| {100.0 * score.close_fraction:.1f} | {failed[score.optimizer]:.1f} "
            f"| {'' if p is None else f'{p:.2g}'} |"
        )
    return "\n".join(lines)


def against_reference(scores: Sequence[ProblemScore]) -> dict[str, float]:
    """Optimizer to p of a signed-rank test against the reference over problems, after Holm."""
    pairs = [c for c in compare_over_problems(scores) if REFERENCE in (c.first, c.second)]
    corrected = holm([pair.wilcoxon_p for pair in pairs])
    others = [pair.second if pair.first == REFERENCE else pair.first for pair in pairs]
    return dict(zip(others, corrected, strict=True))


def failed_percent(scores: Sequence[Score]) -> dict[str, float]:
    """Optimizer to the mean over problems of the share of evaluations that failed, in %."""
    shares: dict[str, list[float]] = {}
    for score in scores:
        shares.setdefault(score.optimizer, []).append(100.0 * score.failed_share)
    return {name: sum(found) / len(found) for name, found in shares.items()}


def instance_table(runs: Sequence[Run], order: Sequence[str]) -> str:
    """Every instance in a line: how large it is, and the final regret of each method in %."""
    found: dict[str, dict[str, float]] = {}
    for score in leaderboard(runs):
        found.setdefault(score.problem, {})[score.optimizer] = score.final_regret_percent
    lines = [
        f"| instance | candidates | do not run, % | {' | '.join(order)} |",
        f"|---|{'---:|' * (len(order) + 2)}",
    ]
    for name in ("pco32", "pco64", *USCALE):
        table = load_table(name)
        share = 100.0 * (1.0 - table.is_feasible.mean())
        cells = [name, str(len(table)), f"{share:.0f}"]
        if name in found:
            least = min(found[name].values())
            cells += [_cell(found[name][method], least) for method in order]
        else:
            cells += ["-"] * len(order)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(regret: float, least: float) -> str:
    text = f"{regret:.1f}"
    return f"**{text}**" if text == f"{least:.1f}" else text


def main() -> None:
    """Packs a store where one is given, and writes both tables."""
    if len(sys.argv) > 1:
        PACKED.parent.mkdir(exist_ok=True)
        print(f"{pack_store(Path(sys.argv[1]), PACKED)} runs")
    of_suite, _ = read_packed(PACKED)
    (grid,) = (path for path in published_files() if path.stem == "grid")
    of_grid, _ = read_packed(grid)
    scores = problem_scores(of_suite, {n: len(load_problem(n).space) for n in SUITES["uscale"]})
    order = [score.optimizer for score in suite_scores(scores)]
    page = DOCS / "grid.md"
    text = page.read_text(encoding="utf-8")
    for mark, table in (
        ("suite", suite_table(of_suite)),
        ("instances", instance_table([*of_grid, *of_suite], order)),
    ):
        between = f"<!-- {mark} -->\n\n{table}\n\n<!-- /{mark} -->"
        text = re.sub(rf"<!-- {mark} -->.*<!-- /{mark} -->", between, text, flags=re.DOTALL)
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
