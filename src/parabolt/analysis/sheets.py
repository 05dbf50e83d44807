"""Findings as tables: each holds the figures in full, and what of them is shown to people."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, fields
from typing import TYPE_CHECKING, Any

from parabolt.analysis.comparison import Comparison
from parabolt.analysis.leaderboard import COLUMNS, Score, score_cells
from parabolt.outcome import STATUSES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from parabolt.analysis.findings import BoardFindings, Findings


@dataclass(frozen=True)
class Sheet:
    """A table.

    Attributes:
        name: Name of its file, without ending.
        title: What it holds, in words.
        columns: Names of its columns.
        rows: Figures in full; NaN where there is none.
        headings: Headings of what is shown.
        shown: Part of the table, such as a problem, to its lines as texts.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    headings: tuple[str, ...]
    shown: dict[str, list[list[str]]]


def make_sheets(findings: Findings) -> list[Sheet]:
    """Every table of the findings; one without rows is left out."""
    made = [
        leaderboard_sheet(findings),
        comparison_sheet(findings),
        rank_sheet(findings),
        run_sheet(findings),
        _plain("curves", "Regret and success", _CURVE_COLUMNS, _curve_rows(findings)),
        _plain("profile", "Performance profile", ("optimizer", "factor", "share"),
               _profile_rows(findings)),
        _plain("front", "Pareto front of throughput and memory", _FRONT_COLUMNS,
               _front_rows(findings)),
        _plain("hypervolume", "Hypervolume found, in percent of the front's", _VOLUME_COLUMNS,
               _volume_rows(findings)),
        _plain("landscape", "What each candidate gives", _LANDSCAPE_COLUMNS,
               _landscape_rows(findings)),
    ]  # fmt: skip
    return [sheet for sheet in made if sheet.rows]


def leaderboard_sheet(findings: Findings) -> Sheet:
    """One line per problem and optimizer."""
    return Sheet(
        name="leaderboard",
        title="Leaderboard",
        columns=tuple(field.name for field in fields(Score)),
        rows=[astuple(score) for score in findings.scores],
        headings=tuple(COLUMNS),
        shown={
            found.board.label: [score_cells(score) for score in found.scores]
            for found in findings.boards
        },
    )


def comparison_sheet(findings: Findings) -> Sheet:
    """Tests of optimizers two by two."""
    reference = findings.reference
    shown: dict[str, list[list[str]]] = {}
    for comparison in findings.comparisons:
        shown.setdefault(comparison.problem, []).append(
            [comparison.second if reference else f"{comparison.first} / {comparison.second}",
             *_comparison_cells(comparison)]
        )  # fmt: skip
    return Sheet(
        name="comparisons",
        title=f"{f'{reference} against each other' if reference else 'Every pair of'} optimizer"
        f"{'' if reference else 's'}, by final regret, paired by seed",
        columns=tuple(field.name for field in fields(Comparison)),
        rows=[astuple(comparison) for comparison in findings.comparisons],
        headings=("against" if reference else "pair", "seeds", "better / tied / worse",
                  "signed-rank p", "Holm p", "least Holm p", "rank-sum p", "P(better)"),
        shown=shown,
    )  # fmt: skip


def rank_sheet(findings: Findings) -> Sheet:
    """Mean ranks; empty without a ranking."""
    ranking = findings.ranking
    columns = ("optimizer", "mean_rank", "n_seeds", "friedman_p", "critical_difference")
    rows = [
        (name, rank, ranking.n_seeds, ranking.friedman_p, ranking.critical_difference)
        for name, rank in (ranking.mean_ranks.items() if ranking else ())
        if ranking
    ]
    lines = [[name, f"{rank:.2f}"] for name, rank, *_ in rows]
    shown = {", ".join(ranking.problems): lines} if ranking else {}
    headings = ("optimizer", "mean rank")
    return Sheet("ranks", "Mean ranks by final regret", columns, rows, headings, shown)


def run_sheet(findings: Findings) -> Sheet:
    """How many runs each optimizer has, and why others are not there."""
    columns = ("problem", "optimizer", "n_wanted", "n_finished", "n_failed", "n_missing",
               "n_compared", "summary")  # fmt: skip
    rows = [
        (found.board.label, group.label, group.n_wanted, len(group.runs), len(group.failed),
         len(group.missing_seeds), len(found.runs.get(group.label, ())), group.summary)
        for found in findings.boards
        for group in found.board.groups
    ]  # fmt: skip
    headings = ("optimizer", "wanted", "finished", "failed", "missing", "compared", "in words")
    shown: dict[str, list[list[str]]] = {}
    for problem, *cells in rows:
        shown.setdefault(str(problem), []).append(list(map(str, cells)))
    return Sheet("runs", "Runs", columns, rows, headings, shown)


_CURVE_COLUMNS = ("problem", "axis", "optimizer", "at", "regret_mean_percent",
                  "regret_median_percent", "regret_lower_percent", "regret_upper_percent",
                  "mean_log_regret", "found_share")  # fmt: skip
_FRONT_COLUMNS = ("problem", "configuration", "throughput", "peak_memory_gib", "reference_gib")
_VOLUME_COLUMNS = ("problem", "optimizer", "evaluation", "mean_percent", "median_percent",
                   "lower_percent", "upper_percent")  # fmt: skip
_LANDSCAPE_COLUMNS = ("problem", "configuration", "status", "throughput", "peak_memory_gib")


def _curve_rows(findings: Findings) -> Iterator[tuple[Any, ...]]:
    for found in findings.boards:
        for axis, curves in found.curves.items():
            for name, curve in curves.items():
                regret = curve.regret
                columns = (curve.at, regret.mean, regret.median, regret.lower, regret.upper,
                           curve.mean_log_regret, curve.found)  # fmt: skip
                for values in zip(*(column.tolist() for column in columns), strict=True):
                    yield (found.board.label, axis, name, *values)


def _profile_rows(findings: Findings) -> Iterator[tuple[Any, ...]]:
    for name, share in findings.profile.share.items():
        for factor, value in zip(findings.profile.factor.tolist(), share.tolist(), strict=True):
            yield name, factor, value


def _front_rows(findings: Findings) -> Iterator[tuple[Any, ...]]:
    for found in findings.boards:
        if found.landscape and found.tradeoff:
            for row in found.tradeoff.front.tolist():
                outcome = found.landscape.outcomes[row]
                yield (found.board.label, found.landscape.text(row), outcome.throughput,
                       outcome.peak_memory_gib, found.tradeoff.capacity_gib)  # fmt: skip


def _volume_rows(findings: Findings) -> Iterator[tuple[Any, ...]]:
    for found in findings.boards:
        for name, curve in (found.tradeoff.curves if found.tradeoff else {}).items():
            columns = (curve.mean, curve.median, curve.lower, curve.upper)
            values = zip(*(column.tolist() for column in columns), strict=True)
            for number, row in enumerate(values, start=1):
                yield (found.board.label, name, number, *row)


def _landscape_rows(findings: Findings) -> Iterator[tuple[Any, ...]]:
    for found in findings.boards:
        yield from _candidates(found)


def _candidates(found: BoardFindings) -> Iterator[tuple[Any, ...]]:
    if found.landscape is None:
        return
    outcomes = found.landscape.outcomes
    for row in range(len(outcomes)):
        yield (found.board.label, found.landscape.text(row), str(STATUSES[outcomes.status[row]]),
               float(outcomes.throughput[row]), float(outcomes.peak_memory_gib[row]))  # fmt: skip


def _plain(
    name: str, title: str, columns: tuple[str, ...], rows: Iterable[tuple[Any, ...]]
) -> Sheet:
    made = list(rows)
    return Sheet(name, title, columns, made, columns, _by_first(made))


def _by_first(rows: Sequence[tuple[Any, ...]]) -> dict[str, list[list[str]]]:
    shown: dict[str, list[list[str]]] = {}
    for row in rows:
        shown.setdefault(str(row[0]), []).append([_text(value) for value in row])
    return shown


def _comparison_cells(c: Comparison) -> list[str]:
    return [
        str(c.n_seeds),
        f"{c.n_better} / {c.n_tied} / {c.n_worse}",
        *(_text(p) for p in (c.signed_rank_p, c.holm_p, c.smallest_holm_p, c.mann_whitney_p)),
        "-" if math.isnan(c.superiority) else f"{c.superiority:.2f}",
    ]


def _text(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return "-" if math.isnan(value) else f"{value:.4g}"
