"""The first paragraph of a page of findings: what came out, in sentences of HTML."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from parabolt.analysis.leaderboard import found_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from parabolt.analysis.comparison import Comparison
    from parabolt.analysis.findings import BoardFindings, Findings
    from parabolt.analysis.leaderboard import Score
    from parabolt.analysis.statistics import Ranking

#: Mean regrets closer than this, in percent of the optimum, are a tie.
_TIE_PERCENT = 1e-6

#: Mean ranks closer than this are a tie.
_TIE_RANK = 1e-9

#: Most names that a sentence lists.
_MOST_NAMES = 5

#: Verdicts of a comparison, in the order in which they are told.
_VERDICTS = (
    "better than",
    "better, not significantly, than",
    "as often better as worse than",
    "worse, not significantly, than",
    "worse than",
)


def headline(findings: Findings) -> Iterator[str]:
    """Sentences: who came closest on each problem, what failed, ranks or tests against one."""
    for found in findings.boards:
        best = leaders(found.scores)
        shown = [f"{_bold(s.optimizer)} (found {found_text(s)})" for s in best[:_MOST_NAMES]]
        who, more = ", ".join(shown), _more(len(best))
        yield (
            f"On {_bold(found.board.label)}, {'a tie' if len(best) > 1 else 'closest'} at "
            f"{best[0].final_regret_percent:.2f} % below the optimum on average at the end: {who}"
            f"{more}."
        )
        yield from _incomplete(found)
    ranking = findings.ranking
    if ranking and findings.reference is None:
        yield _rank_summary(ranking)
    yield from _against(findings)


def _incomplete(found: BoardFindings) -> Iterator[str]:
    """Which runs failed or are missing, and how a failed one counts."""
    groups = [group for group in found.board.groups if not group.is_complete]
    told = [f"{_bold(group.label)} has {html.escape(group.summary)}" for group in groups]
    if told:
        yield f"{', '.join(told[:_MOST_NAMES])}{_more(len(told))}."
    if any(score.n_failed for score in found.scores):
        yield "A failed run counts as one that found nothing."


def _rank_summary(ranking: Ranking) -> str:
    least = min(ranking.mean_ranks.values())
    best = [name for name, rank in ranking.mean_ranks.items() if rank - least < _TIE_RANK]
    near = [
        name
        for name, rank in ranking.mean_ranks.items()
        if _TIE_RANK <= rank - least < ranking.critical_difference
    ]
    who = f"{_names(best)} {'has' if len(best) == 1 else 'tie for'} the best mean rank"
    if not near:
        return f"{who}; all others are further away than the critical difference."
    return f"{who}; within the critical difference of it: {_names(near)}."


def _against(findings: Findings) -> Iterator[str]:
    """A sentence for each problem: what the reference is better than, and the other verdicts."""
    if findings.reference is None:
        return
    by_problem: dict[str, dict[str, list[Comparison]]] = {}
    for c in findings.overall or findings.comparisons:
        by_problem.setdefault(c.problem, {}).setdefault(_verdict(c), []).append(c)
    for problem, verdicts in by_problem.items():
        told = [
            f"{verdict} {_names([c.second for c in verdicts[verdict]])} "
            f"(Holm p {_range([c.holm_p for c in verdicts[verdict]])})"
            for verdict in _VERDICTS
            if verdict in verdicts
        ]
        yield f"{_bold(findings.reference)} on {html.escape(problem)}: {'; '.join(told)}."


def _verdict(c: Comparison) -> str:
    if c.n_better == c.n_worse:
        return "as often better as worse than"
    is_significant = c.holm_p <= 0.05
    if c.n_better > c.n_worse:
        return "better than" if is_significant else "better, not significantly, than"
    return "worse than" if is_significant else "worse, not significantly, than"


def _range(values: Sequence[float]) -> str:
    least, most = f"{min(values):.3g}", f"{max(values):.3g}"
    return least if least == most else f"{least} to {most}"


def _names(names: Sequence[str]) -> str:
    return ", ".join(map(_bold, names[:_MOST_NAMES])) + _more(len(names))


def _more(n: int) -> str:
    return f" and {n - _MOST_NAMES} more" if n > _MOST_NAMES else ""


def leaders(scores: Sequence[Score]) -> list[Score]:
    """The optimizers with the least mean regret, of which there may be several."""
    least = scores[0].final_regret_percent
    return [score for score in scores if score.final_regret_percent <= least + _TIE_PERCENT]


def _bold(text: str) -> str:
    return f"<b>{html.escape(text)}</b>"
