"""What there is to say of results: every figure, table and format draws from this alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from parabolt.analysis.comparison import ALL_PROBLEMS, compare_pairs, compare_with
from parabolt.analysis.curves import AXES, has_clock, regret_curve
from parabolt.analysis.landscape import Landscape
from parabolt.analysis.leaderboard import leaderboard
from parabolt.analysis.metrics import group_runs
from parabolt.analysis.statistics import performance_profile, rank_optimizers
from parabolt.analysis.tradeoff import tradeoff
from parabolt.analysis.words import count
from parabolt.errors import OptionError
from parabolt.problems.registry import load_problem, problem_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from parabolt.analysis.comparison import Comparison
    from parabolt.analysis.curves import Axis, Curve
    from parabolt.analysis.leaderboard import Score
    from parabolt.analysis.statistics import Profile, Ranking
    from parabolt.analysis.tradeoff import Tradeoff
    from parabolt.experiments.results import Board, FailedCount, Results
    from parabolt.experiments.run import Run
    from parabolt.problems.problem import Problem


@dataclass(frozen=True, eq=False)
class BoardFindings:
    """What there is to say of one board: a problem under a protocol.

    Attributes:
        board: The board.
        runs: Optimizer to the runs that are compared, best optimizer first. They are of common
            seeds.
        seeds: Those seeds, ascending.
        scores: A line for each optimizer, best first.
        curves: Axis to optimizer to curve.
        comparisons: Tests of optimizers two by two.
        landscape: What each candidate gives; None where the problem's data are not at hand.
        tradeoff: Throughput against memory; None where it can't be had.
        notes: What a reader must know of the runs, in words.
    """

    board: Board
    runs: dict[str, list[Run]]
    seeds: tuple[int, ...]
    scores: list[Score]
    curves: dict[Axis, dict[str, Curve]]
    comparisons: list[Comparison]
    landscape: Landscape | None
    tradeoff: Tradeoff | None
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Findings:
    """What there is to say of results.

    Attributes:
        boards: Board by board.
        optimizers: All optimizers, best mean rank first.
        reference: The optimizer that all others are compared with; None where all pairs are.
        overall: Comparisons with the reference over all problems.
        ranking: Mean ranks; None with one optimizer, or where no seed is common.
        profile: The performance profile.
        notes: What a reader must know of the results as a whole.
    """

    boards: tuple[BoardFindings, ...]
    optimizers: tuple[str, ...]
    reference: str | None
    overall: list[Comparison]
    ranking: Ranking | None
    profile: Profile
    notes: tuple[str, ...]

    @property
    def runs(self) -> list[Run]:
        """The runs that are compared, board by board."""
        return [run for found in self.boards for group in found.runs.values() for run in group]

    @property
    def scores(self) -> list[Score]:
        """All lines of the leaderboards."""
        return [score for found in self.boards for score in found.scores]

    @property
    def comparisons(self) -> list[Comparison]:
        """All tests, those over all problems last."""
        return [c for found in self.boards for c in found.comparisons] + self.overall


def find(
    results: Results,
    *,
    failed: FailedCount = "nothing",
    against: str | None = None,
    problems: Iterable[Problem] = (),
) -> Findings:
    """What there is to say of results.

    Optimizers of a board are compared over the seeds that all of them ran; notes say which runs
    that leaves out, which failed and which are missing.

    Args:
        results: The results.
        failed: Whether a failed run counts as one that found nothing, or is left out.
        against: Optimizer to compare all others with; by default all pairs are compared.
        problems: Problems whose landscapes are shown where results are of their data, beside those
            of the embedded tables.

    Raises:
        OptionError: If no run is left to compare.
        UnknownNameError: If no run is of `against`.
    """
    compared = {board.label: _common_runs(board, failed) for board in results.boards}
    everything = [
        run for groups, _ in compared.values() for group in groups.values() for run in group
    ]
    if not everything:
        told = "; ".join(note for _, notes in compared.values() for note in notes)
        raise OptionError(f"expected runs that can be compared, got none: {told}")
    landscapes = _landscapes(results, problems)
    ranking = rank_optimizers(everything)
    optimizers = _ordered(everything, ranking)
    comparisons = compare_with(everything, against) if against else compare_pairs(everything)
    boards = [
        _board_findings(
            board, *compared[board.label], optimizers,
            [c for c in comparisons if c.problem == board.label],
            landscapes.get(board.content_hash),
        )
        for board in results.boards
    ]  # fmt: skip
    return Findings(
        boards=tuple(found for found in boards if found.runs),
        optimizers=tuple(optimizers),
        reference=against,
        overall=[c for c in comparisons if c.problem == ALL_PROBLEMS],
        ranking=ranking,
        profile=performance_profile(everything),
        notes=(*results.notices, *(n for found in boards if not found.runs for n in found.notes)),
    )


def _common_runs(board: Board, failed: FailedCount) -> tuple[dict[str, list[Run]], list[str]]:
    """Runs of a board over the seeds that all its optimizers have, and what is to be said of it."""
    notes = [f"{group.label}: {group.summary}" for group in board.groups if not group.is_complete]
    if math.isnan(board.optimum):
        return {}, [f"{board.label}: no run has finished", *notes]
    counted = {name: runs for name, runs in board.counted(failed).items() if runs}
    if not counted:
        return {}, notes
    seeds = set.intersection(*({run.key.seed for run in runs} for runs in counted.values()))
    if failed == "left-out" and any(group.failed for group in board.groups):
        notes.append("failed runs are left out, as was asked for")
    extra = {name: len(runs) - len(seeds) for name, runs in counted.items()}
    if not seeds:
        return {}, [*notes, f"{board.label}: the optimizers have no seed in common"]
    if any(extra.values()):
        more = ", ".join(f"{n} of {name}" for name, n in extra.items() if n)
        notes.append(
            f"the seeds are unequal: the {count(len(seeds), 'seed')} that all have are compared, "
            f"and further runs are left out ({more})"
        )
    return {n: [r for r in runs if r.key.seed in seeds] for n, runs in counted.items()}, notes


def _board_findings(
    board: Board,
    runs: dict[str, list[Run]],
    notes: Sequence[str],
    optimizers: Sequence[str],
    comparisons: list[Comparison],
    landscape: Landscape | None,
) -> BoardFindings:
    ordered = {name: runs[name] for name in optimizers if name in runs}
    everything = [run for group in ordered.values() for run in group]
    axes = [axis for axis in AXES if axis == "evaluations" or has_clock(everything, axis)]
    return BoardFindings(
        board=board,
        runs=ordered,
        seeds=tuple(sorted({run.key.seed for run in everything})),
        scores=leaderboard(everything),
        curves={
            axis: {name: regret_curve(group, axis) for name, group in ordered.items()}
            for axis in axes
            if ordered
        },
        comparisons=comparisons,
        landscape=landscape,
        tradeoff=tradeoff(landscape, ordered) if landscape and ordered else None,
        notes=tuple(notes),
    )


def _landscapes(results: Results, problems: Iterable[Problem]) -> dict[str, Landscape]:
    """Content hash to landscape. What a run's file names is never opened or fetched."""
    wanted = {board.content_hash for board in results.boards}
    known = [*(load_problem(name) for name in problem_names()), *problems]
    return {p.content_hash: Landscape.of(p) for p in known if p.content_hash in wanted}


def _ordered(runs: Sequence[Run], ranking: Ranking | None) -> list[str]:
    """Optimizers by mean rank; without ranks, by their places on the leaderboards."""
    if ranking:
        return list(ranking.mean_ranks)
    groups = group_runs(runs).values()
    names = dict.fromkeys(name for group in groups for name in group)
    return list(names)
