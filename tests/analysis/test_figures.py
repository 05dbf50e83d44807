"""Static figures and interactive charts show the same arrays, and files are what they say."""

import struct
import sys
from dataclasses import replace

import numpy as np
import pytest

import parabolt
import parabolt.analysis.charts as charts  # so that it is seen to need plotly
from parabolt.analysis.figures import draw_figures, make_figures
from parabolt.analysis.findings import find
from parabolt.analysis.method_style import method_style
from parabolt.analysis.page import write_page
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.results import collect
from parabolt.experiments.run import RunKey, execute
from parabolt.experiments.store import FailedRun

pytestmark = pytest.mark.needs("plotly", "matplotlib")


@pytest.fixture(scope="module")
def findings():
    problems = [parabolt.load_problem(name) for name in ("pco32", "pco64")]
    runs = [
        execute(problem, RunKey.of(problem, label, seed, Protocol(n_evaluations=12), method=method))
        for problem in problems
        for label, method in (("random", "random"), ("_$x$", "random"), ("tpe", "tpe"))
        for seed in (0, 1, 2)
    ]
    return find(collect(runs))


@pytest.fixture(scope="module")
def figures(findings):
    return dict(make_figures(findings))


def lines_of(axes):
    """Label or place to (x, y) of the lines drawn."""
    return [(np.asarray(line.get_xdata()), np.asarray(line.get_ydata())) for line in axes.lines]


def traces_of(figure, *, mode="lines", **meta):
    return [
        trace
        for trace in figure.data
        if trace.mode == mode
        and all((trace.meta or {}).get(key) == value for key, value in meta.items())
    ]


@pytest.mark.parametrize("axis", ["evaluations", "hours", "GPU-hours"])
def test_curves(findings, figures, axis):
    figure = figures["curves" if axis == "evaluations" else f"curves-{axis.lower()}"]
    for column, found in enumerate(findings.boards):
        drawn = charts.curve_chart(found)
        above, below = figure.axes[column], figure.axes[column + len(findings.boards)]
        for row, (name, curve) in enumerate(found.curves[axis].items()):
            regret, share = traces_of(drawn, method=name, axis=axis)
            (x, median), (at, found_share) = lines_of(above)[row], lines_of(below)[row]
            assert x.tolist() == list(regret.x) == curve.at.tolist()
            assert median.tolist() == list(regret.customdata) == curve.regret.median.tolist()
            assert list(regret.y) == np.maximum(curve.regret.median, charts.FLOOR_PERCENT).tolist()
            assert at.tolist() == list(share.x)
            assert found_share.tolist() == list(share.y) == curve.found.tolist()
            assert above.lines[row].get_color() == regret.line.color == method_style(name).color


def test_the_page_begins_with_evaluations(findings):
    drawn = charts.curve_chart(findings.boards[0])
    assert {trace.meta["axis"]: trace.visible for trace in drawn.data} == {
        "evaluations": True, "hours": False, "GPU-hours": False,
    }  # fmt: skip


def test_ranks(findings, figures):
    drawn = charts.rank_chart(findings.ranking)
    offsets = figures["ranks"].axes[0].collections[0].get_offsets()
    assert [trace.x[0] for trace in drawn.data] == [float(x) for x, _ in offsets]
    assert [float(x) for x, _ in offsets] == list(findings.ranking.mean_ranks.values())
    (band,) = drawn.layout.shapes
    assert band.x1 - band.x0 == pytest.approx(findings.ranking.critical_difference)
    grey = figures["ranks"].axes[0].patches[0]
    assert grey.get_x() + grey.get_width() == pytest.approx(band.x1)


def test_outcomes(findings, figures):
    for axes, found in zip(figures["outcomes"].axes, findings.boards, strict=True):
        shares = [bar.get_width() for bar in axes.patches]
        drawn = charts.outcome_chart(found.scores)
        assert shares == [trace.x[0] for trace in drawn.data]
        assert shares == [100.0 * score.oom_share for score in found.scores]


@pytest.fixture(scope="module")
def failing():
    """Runs on a table that doesn't say of what runs failed."""
    problem = parabolt.load_problem("uscale-8b-16")
    protocol = Protocol(n_evaluations=12)
    keys = [RunKey.of(problem, "random", seed, protocol) for seed in (0, 1)]
    return find(collect([execute(problem, key) for key in keys]), problems=[problem])


def test_failures_of_unknown_kind_are_hatched_and_have_a_mark_of_their_own(failing):
    (found,) = failing.boards
    failed = 100.0 * found.scores[0].failed_share
    assert failed > 0.0
    drawn = charts.outcome_chart(found.scores)
    assert [(bar.x[0], bar.marker.pattern.shape) for bar in drawn.data] == [
        (0.0, ""),
        (failed, "/"),
    ]
    figures = dict(make_figures(failing))
    (axes,) = figures["outcomes"].axes
    assert [(b.get_width(), b.get_hatch()) for b in axes.patches] == [(0.0, None), (failed, "////")]
    assert axes.get_xlabel() == "did not run, % (hatched: failed, memory or crash)"
    heat = {trace.name: trace for trace in charts.heat_map(found.landscape).data[2:]}
    assert heat["failed (memory or a crash)"].marker.symbol == "circle-open"
    assert len(heat["failed (memory or a crash)"].x) == 79
    assert "out of memory" not in heat
    title = figures["landscape-uscale-8b-16"].get_suptitle()
    assert title == "uscale-8b-16 (star: optimum, ring: failed (memory or a crash))"
    page = write_page(failing)
    assert "A ring failed, for memory or a crash. Blank is no candidate" in page
    assert "Hatched: failed, for memory or a crash" in page
    assert "ran out of memory. " not in page


def test_profile(findings, figures):
    drawn = charts.profile_chart(findings.profile)
    for (x, y), trace in zip(lines_of(figures["profile"].axes[0]), drawn.data, strict=True):
        assert x.tolist() == list(trace.x)
        assert y.tolist() == list(trace.y)
        assert list(trace.y)[:-1] == findings.profile.share[trace.meta["method"]].tolist()


def test_an_axis_of_factors_never_has_one_value(made_runs):
    findings = find(collect(made_runs({"a": [0, 0], "b": [0, 0]})))
    assert findings.profile.factor.tolist() == [1.0]
    drawn = charts.profile_chart(findings.profile)
    assert tuple(drawn.layout.xaxis.range) == (0.0, pytest.approx(np.log10(2.0)))
    assert dict(make_figures(findings))["profile"].axes[0].get_xlim() == (1.0, 2.0)


def test_tradeoff_and_hypervolume(findings, figures):
    for found in findings.boards:
        left, right = figures[f"tradeoff-{found.board.label}"].axes
        front = charts.tradeoff_chart(found.landscape, found.tradeoff).data[1]
        assert (front.name, front.line.shape) == ("Pareto front", "hv")
        x, y = lines_of(left)[0]
        assert (x.tolist(), y.tolist()) == (list(front.x), list(front.y))
        volumes = traces_of(charts.volume_chart(found.tradeoff))
        for (_, y), trace in zip(lines_of(right), volumes, strict=True):
            assert y.tolist() == list(trace.y)
            assert y.tolist() == found.tradeoff.curves[trace.meta["method"]].median.tolist()


def test_heat_maps(findings, figures):
    for found in findings.boards:
        drawn = charts.heat_map(found.landscape)
        for axes, trace in zip(
            figures[f"landscape-{found.board.label}"].axes[:2], drawn.data[:2], strict=True
        ):
            picture = np.ma.filled(axes.images[0].get_array(), np.nan)
            assert np.array_equal(picture, np.array(trace.z, dtype=float), equal_nan=True)
        assert [trace.visible for trace in drawn.data[:2]] == [True, False]
        crosses, star = drawn.data[2], drawn.data[4]
        assert len(crosses.x) == (~found.landscape.outcomes.is_feasible).sum()
        assert drawn.data[0].z[star.y[0]][star.x[0]] == found.board.optimum


def test_parallel_coordinates(findings, figures):
    for found in findings.boards:
        drawn = charts.parallel_coordinates(found.landscape)
        lines = figures[f"knobs-{found.board.label}"].axes[0].lines
        assert len(lines) == len(found.landscape)
        shown = [y for trace in drawn.data for y in (trace.y or ()) if y is not None]
        static = np.concatenate([line.get_ydata() for line in lines])
        assert static == pytest.approx(shown, abs=1e-4)


def test_files_of_every_format(made_runs):
    findings = find(collect(made_runs({"a": [1, 2], "_$x$": [2, 3]})))
    for form, head in (("png", b"\x89PNG"), ("pdf", b"%PDF-"), ("svg", b"<?xml")):
        made = dict(draw_figures(findings, form))
        assert list(made) == [
            "curves", "curves-hours", "curves-gpu-hours", "ranks", "outcomes", "profile",
        ]  # fmt: skip
        assert {content[: len(head)] for content in made.values()} == {head}
        assert made == dict(draw_figures(findings, form)), form  # no date, no random identifiers
        if form == "png":
            width, height = struct.unpack(">II", made["curves"][16:24])
            assert height == 840
            assert width in (779, 780)  # matplotlib 3.10.0 cuts 779.99... off, later ones round it
        if form == "svg":  # a dollar sign begins no formula
            assert b"<!-- _$x$ -->" in made["ranks"]


def test_a_leading_underscore_hides_no_name(findings):
    legend = dict(make_figures(findings))["curves"].legends[0]
    assert [text.get_text().strip() for text in legend.get_texts()] == list(findings.optimizers)


def test_bands_of_many_optimizers_are_left_out(made_runs):
    for n, has_bands in ((6, True), (7, False)):
        findings = find(collect(made_runs({f"o{i}": [1, 2] for i in range(n)})))
        drawn = charts.curve_chart(findings.boards[0])
        assert any(trace.fill == "toself" for trace in drawn.data) == has_bands
        figure = dict(make_figures(findings))["curves"]
        assert bool(figure.axes[0].collections) == has_bands
        assert ("band" in figure.axes[0].get_ylabel()) == has_bands


def test_titles_say_seeds_and_failures(made_runs):
    runs = made_runs({"a": [1, 2, 3], "b": [1, 2]})
    key = next(run.key for run in runs if run.key.optimizer == "b")
    failed = FailedRun(replace(key, seed=2), "x", optimum=0.5)
    figure = dict(make_figures(find(collect(runs, [failed]))))["curves"]
    assert figure.axes[0].get_title() == "pco32: 3 seeds, 1 run failed"


def test_without_matplotlib_it_says_what_to_install(findings, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(parabolt.MissingDependencyError, match=r"pip install 'parabolt\[plot\]'"):
        next(draw_figures(findings, "png"))
