"""The leaderboard as Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
from dataclasses import astuple, fields
from typing import TYPE_CHECKING

from parabolt.analysis.leaderboard import COLUMNS, Score, score_cells

if TYPE_CHECKING:
    from collections.abc import Sequence

_TEX = str.maketrans({"%": r"\%", "_": r"\_", "&": r"\&", "#": r"\#", ">": r"$>$", "<": r"$<$"})


def as_markdown(scores: Sequence[Score]) -> str:
    """A table per problem."""
    lines = []
    for problem, group in _by_problem(scores).items():
        lines += [f"## {problem}", "", f"| {' | '.join(COLUMNS)} |"]
        lines += ["|---|" + "---:|" * (len(COLUMNS) - 1)]
        lines += [f"| {' | '.join(score_cells(score))} |" for score in group]
        lines += [""]
    return "\n".join(lines)


def as_csv(scores: Sequence[Score]) -> str:
    """One line per score with every figure in full."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([field.name for field in fields(Score)])
    writer.writerows(astuple(score) for score in scores)
    return text.getvalue()


def as_latex(scores: Sequence[Score]) -> str:
    r"""A `tabular` per problem for the `booktabs` package."""
    lines = []
    for problem, group in _by_problem(scores).items():
        lines += [
            f"% {problem}",
            rf"\begin{{tabular}}{{l{'r' * (len(COLUMNS) - 1)}}}",
            r"\toprule",
            " & ".join(_tex(name) for name in COLUMNS) + r" \\",
            r"\midrule",
            *(" & ".join(_tex(cell) for cell in score_cells(score)) + r" \\" for score in group),
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    return "\n".join(lines)


def _by_problem(scores: Sequence[Score]) -> dict[str, list[Score]]:
    groups: dict[str, list[Score]] = {}
    for score in scores:
        groups.setdefault(score.problem, []).append(score)
    return groups


def _tex(text: str) -> str:
    return text.translate(_TEX)
