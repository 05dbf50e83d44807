"""The report's files against the raw runs, and the page in a real browser."""

import csv
import json
import re
import sys
from dataclasses import replace

import numpy as np
import optuna._hypervolume
import pandas as pd
import pyarrow.parquet as pq
import pytest
import scipy.stats

import parabolt
from parabolt.analysis.findings import find
from parabolt.analysis.headline import headline
from parabolt.analysis.page import script_json
from parabolt.analysis.report import FORMATS, file_part, write_report
from parabolt.errors import LockedError
from parabolt.experiments.results import collect, read_results
from parabolt.experiments.runner import lock_store, run_study
from parabolt.experiments.store import FailedRun
from parabolt.experiments.study import OptimizerChoice, Study

pytestmark = pytest.mark.needs("plotly", "matplotlib", "playwright")

OPTIMA = {"pco32": 0.469575911560675, "pco64": 0.270684453437186}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    study = Study(
        problems=("pco32", "pco64"),
        optimizers=tuple(OptimizerChoice(n, n) for n in ("random", "tpe", "logeic")),
        seeds=(0, 1, 2),
        protocol=(("n_evaluations", 8),),
    )
    run_study(study, [parabolt.load_problem(name) for name in study.problems], folder)
    return folder


@pytest.fixture(scope="module")
def findings(folder):
    return find(read_results([folder]), against="logeic")


@pytest.fixture(scope="module")
def written(findings, tmp_path_factory):
    """The report in every format."""
    out = tmp_path_factory.mktemp("report")
    write_report(findings, out, formats=FORMATS)
    return out


@pytest.fixture(scope="module")
def raw(folder):
    """Every evaluation of every run, straight from the files."""
    parts = []
    for path in sorted((folder / "runs").glob("*.parquet")):
        table = pq.read_table(path)
        key = json.loads(table.schema.metadata[b"parabolt.run"])["key"]
        part = table.to_pandas()
        parts.append(
            part.assign(problem=key["problem"], optimizer=key["optimizer"], seed=key["seed"])
        )
    return pd.concat(parts, ignore_index=True)


def regrets_of(raw):
    """(problem, optimizer, seed) to simple regrets in percent, evaluation by evaluation."""
    regrets = {}
    for (problem, name, seed), run in raw.groupby(["problem", "optimizer", "seed"]):
        best = run.sort_values("evaluation").throughput.where(run.status == "ok").fillna(0).cummax()
        regrets[problem, name, seed] = 100 * (1 - best.to_numpy() / OPTIMA[problem])
    return regrets


def test_the_leaderboard_follows_from_the_raw_runs(raw, written):
    regrets = regrets_of(raw)
    rows = pd.read_csv(written / "report.csv")
    assert len(rows) == 6
    for row in rows.itertuples():
        own = np.array([regrets[row.problem, row.optimizer, seed] for seed in range(3)])
        assert row.final_regret_percent == pytest.approx(own[:, -1].mean())
        assert row.n_found == (own[:, -1] < 1e-6).sum()
        assert row.regret_area_percent == pytest.approx(own[:, 10:].mean())
        runs = raw[(raw.problem == row.problem) & (raw.optimizer == row.optimizer)]
        chosen = runs[~runs.is_initial]
        assert row.oom_share == pytest.approx((chosen.status == "oom").mean())
        assert row.step_time_s == pytest.approx(chosen.step_time_s.mean())
    for _, board in rows.groupby("problem"):
        assert board.final_regret_percent.is_monotonic_increasing


def test_curves_ranks_and_tests_follow_from_the_raw_runs(raw, written):
    regrets = regrets_of(raw)
    curves = pd.read_csv(written / "report-curves.csv")
    curves = curves[curves.axis == "evaluations"]
    for (problem, name), curve in curves.groupby(["problem", "optimizer"]):
        own = np.array([regrets[problem, name, seed] for seed in range(3)])
        assert curve["at"].tolist() == list(range(1, 19))
        assert curve.regret_median_percent.to_numpy() == pytest.approx(np.median(own, axis=0))
        assert curve.regret_lower_percent.to_numpy() == pytest.approx(
            np.quantile(own, 0.25, axis=0)
        )
        assert curve.found_share.to_numpy() == pytest.approx((own < 1e-6).mean(axis=0))
    ranks = pd.read_csv(written / "report-ranks.csv").set_index("optimizer").mean_rank
    names = sorted(ranks.index)
    blocks = [
        scipy.stats.rankdata(
            np.mean([scipy.stats.rankdata([round(regrets[p, n, s][-1], 9) for n in names])
                     for p in OPTIMA], axis=0)
        )
        for s in range(3)
    ]  # fmt: skip
    assert [ranks[name] for name in names] == pytest.approx(np.mean(blocks, axis=0))
    tests = pd.read_csv(written / "report-comparisons.csv")
    assert tests.problem.tolist() == ["pco32"] * 2 + ["pco64"] * 2 + ["all problems"] * 2
    for row in tests[tests.problem != "all problems"].itertuples():
        a, b = ([regrets[row.problem, n, s][-1] for s in range(3)] for n in (row.first, row.second))
        assert (row.n_better, row.n_worse) == (
            sum(x < y - 1e-9 for x, y in zip(a, b, strict=True)),
            sum(x > y + 1e-9 for x, y in zip(a, b, strict=True)),
        )
        assert row.mann_whitney_p == pytest.approx(
            scipy.stats.mannwhitneyu(np.round(a, 9), np.round(b, 9)).pvalue
        )


def test_hypervolumes_follow_from_the_raw_runs(raw, written):
    found = pd.read_csv(written / "report-hypervolume.csv")
    for problem in OPTIMA:
        table = parabolt.load_problem(problem).table.outcomes
        fits, capacity = table.is_feasible, 96.0
        reference = np.array([0.0, capacity])
        losses = np.stack([-table.throughput[fits], table.peak_memory_gib[fits]], axis=1)
        whole = optuna._hypervolume.compute_hypervolume(losses, reference)
        for name in ("random", "logeic"):
            shares = []
            for seed in range(3):
                run = raw[(raw.problem == problem) & (raw.optimizer == name) & (raw.seed == seed)]
                ok = run[run.status == "ok"]
                points = np.stack([-ok.throughput, ok.peak_memory_gib], axis=1)
                shares.append(
                    100 * optuna._hypervolume.compute_hypervolume(points, reference) / whole
                )
            rows = found[(found.problem == problem) & (found.optimizer == name)]
            assert rows["mean_percent"].iloc[-1] == pytest.approx(np.mean(shares))
            assert rows["median_percent"].iloc[-1] == pytest.approx(np.median(shares))


def test_every_table_and_figure_is_there_in_every_format(written):
    names = [
        "comparisons",
        "ranks",
        "runs",
        "curves",
        "profile",
        "front",
        "hypervolume",
        "landscape",
    ]
    tables = {"report", *(f"report-{name}" for name in names)}
    names = ["curves-hours", "curves-gpu-hours", "ranks", "outcomes", "profile"]
    figures = {"report", *(f"report-{name}" for name in names)}
    figures |= {f"report-{n}-{p}" for n in ("tradeoff", "landscape", "knobs") for p in OPTIMA}
    for form, names in (("csv", tables), ("parquet", tables), ("png", figures), ("pdf", figures),
                        ("svg", figures), ("md", {"report"}), ("html", {"report"})):  # fmt: skip
        assert {path.stem for path in written.glob(f"*.{form}")} == names, form
    in_latex = {"report", "report-curves", "report-profile", "report-front", "report-hypervolume",
                "report-landscape"}  # fmt: skip
    assert {path.stem for path in written.glob("*.tex")} == in_latex


def test_formats_say_the_same(written, findings):
    markdown, latex = ((written / f"report.{form}").read_text() for form in ("md", "tex"))
    for row in csv.DictReader((written / "report.csv").open()):
        shown = f"{float(row['final_regret_percent']):.2f}"
        assert f"| {row['optimizer']} | {row['n_found']}/3 [" in markdown
        assert shown in markdown
        assert shown in latex
    assert latex.count(r"\begin{longtable}") == 2 + 3 + 1 + 2
    data = pq.read_table(written / "report-comparisons.parquet").to_pylist()
    assert data[0]["first"] == "logeic"
    assert [row["holm_p"] for row in data] == [c.holm_p for c in findings.comparisons]


def test_the_page_holds_the_leaderboard_and_what_it_was_run_on(written):
    text = (written / "report.html").read_text(encoding="utf-8")
    body = text[text.index("<body>") :]
    assert re.findall(r"<h2>(pco\d\d)</h2>", body) == ["pco32", "pco64"]
    assert len(re.findall(r"<td>(random|tpe|logeic)</td><td>\d/3 <span", body)) == 6
    assert "data v0.1.0+logs, SHA-256 3c4334851441" in body
    assert "10 initial rows, then 8 evaluations" in body
    assert re.findall(r"src=|href=\"http", body) == []


def test_optimizers_that_end_equally_are_a_tie(made_runs, tmp_path):
    findings = find(collect(made_runs({"a": [20], "b": [20], "c": [40]})))
    text = write_report(findings, tmp_path).read_text(encoding="utf-8")
    summary = text[text.index("<body>") : text.index('<div class="legend"')]
    assert (
        "a tie at 20.00 % below the optimum on average at the end: <b>a</b> (found 0/1 [0, 79] %), "
        "<b>b</b> (found 0/1 [0, 79] %)." in summary
    )
    assert "<b>a</b>, <b>b</b> tie for the best mean rank" in summary


def test_failed_runs_are_in_the_headline(made_runs, tmp_path):
    runs = made_runs({"a": [1, 2], "b": [0]})
    failed = FailedRun(replace(runs[2].key, seed=1), "ValueError: <b> & co", optimum=0.5)
    text = write_report(find(collect(runs, [failed])), tmp_path).read_text(encoding="utf-8")
    told = (
        "<b>b</b> has 1 of 2 runs; 1 failed: ValueError: &lt;b&gt; &amp; co. A failed run counts as"
    )
    assert told in text
    assert "b: 1 of 2 runs; 1 failed: ValueError: &lt;b&gt; &amp; co" in text
    assert '1/2 <span class="interval">[9, 91] %, 1 failed</span>' in text
    assert "pco32: 2 seeds, 4 runs, 1 of them failed" in text


def test_with_too_few_seeds_it_says_so(made_runs, tmp_path):
    many = {f"m{n}": range(10) for n in range(16)}
    text = write_report(find(collect(made_runs(many))), tmp_path).read_text(encoding="utf-8")
    assert "With 10 seeds and so many comparisons no p-value" in text
    assert "can be below 0.234, whatever the runs" in text
    against = write_report(find(collect(made_runs(many)), against="m3"), tmp_path)
    assert "whatever the runs" not in against.read_text(encoding="utf-8")


def test_the_headline_groups_the_verdicts(made_runs):
    regrets = {
        "a": [5] * 8,
        "far & wide": [9] * 8,
        "near": [5, 5, 5, 5, 4, 6, 6, 6],
        "even": [4, 6] * 4,
        "best": [1] * 8,
    }
    *_, sentence = headline(find(collect(made_runs(regrets)), against="a"))
    # 8 seeds, all one way: p = 2 / 2^8; Holm over 4.
    assert sentence == (
        "<b>a</b> on pco32: better than <b>far &amp; wide</b> (Holm p 0.0312); better, not "
        "significantly, than <b>near</b> (Holm p 1); as often better as worse than <b>even</b> "
        "(Holm p 1); worse than <b>best</b> (Holm p 0.0312)."
    )


def test_unknown_formats_and_places(findings, tmp_path):
    with pytest.raises(parabolt.OptionError, match=r"expected one of html, md, .*got docx"):
        write_report(findings, tmp_path, formats=["docx"])
    (tmp_path / "file").write_text("")
    with pytest.raises(parabolt.ParaboltError, match="cannot write"):
        write_report(findings, tmp_path / "file", formats=["md"])


def test_without_plotly_it_says_what_to_install(findings, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(parabolt.MissingDependencyError, match=r"pip install 'parabolt\[report\]'"):
        write_report(findings, tmp_path)


def test_the_report_before_stays_until_the_next_one_is_whole(findings, tmp_path, monkeypatch):
    write_report(findings, tmp_path, formats=["md"])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert before.keys() == {"report.md"}  # no lock and nothing unfinished is left
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    (tmp_path / "report.md").write_text("of last week")
    with pytest.raises(parabolt.MissingDependencyError):
        write_report(findings, tmp_path, formats=["md", "html"])
    with lock_store(tmp_path), pytest.raises(LockedError, match=r"is in use by process \d+ on"):
        write_report(findings, tmp_path, formats=["md"])
    assert (tmp_path / "report.md").read_text() == "of last week"


def test_problems_that_are_not_at_hand_have_no_landscape_and_say_so(made_runs, tmp_path):
    findings = find(collect(made_runs({"a": [1], "b": [2]}, problem="mine")))
    text = write_report(findings, tmp_path).read_text(encoding="utf-8")
    assert "No landscape of mine: its data are not at hand; try --problem PATH" in text


@pytest.mark.parametrize("text", ["</script>", "<!--<script>", "\u2028", "'\"\\", "]]>", "&lt;"])
def test_json_in_a_script_is_no_markup(text):
    made = script_json({"name": text})
    assert "<" not in made
    assert json.loads(made) == {"name": text}


def test_names_of_files():
    assert file_part("landscape-pco32 [n_evaluations 5]/..") == "landscape-pco32-n_evaluations-5-.."
    assert file_part("/") == "unnamed"


# ------------------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def browser():
    import shutil

    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("Chromium is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield browser
        browser.close()


def opened(browser, path, **options):
    """A page in a real browser; complaints and requests are kept."""
    page = browser.new_page(**options)
    page.set_default_timeout(0)  # the limit of every test ends it, however busy the machine
    page.complaints, page.requests = [], []
    page.on("console", lambda message: page.complaints.append(message.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("request", lambda request: page.requests.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_selector(".chart .main-svg")
    page.wait_for_function("plots.every(plot => plot.querySelector('.main-svg'))")
    return page


@pytest.fixture(scope="module")
def page(browser, written):
    page = opened(browser, written / "report.html", viewport={"width": 1400, "height": 1000})
    yield page
    page.close()


@pytest.mark.slow
def test_charts_are_drawn_without_complaint_or_request(page):
    for name in ("curves-0", "ranks", "outcomes-1", "profile", "tradeoff-0", "volume-1", "heat-0",
                 "knobs-1"):  # fmt: skip
        assert page.locator(f"#{name} .main-svg").count() > 0, name
    assert page.locator("#curves-0 .scatterlayer .trace .js-line").count() == 3 * 2
    assert page.locator("#heat-1 .heatmaplayer image").count() == 1
    assert page.complaints == []
    assert len(page.requests) == 1
    assert page.requests[0].startswith("file://")


@pytest.mark.slow
def test_the_legend_hides_a_method_everywhere(page):
    def shown(name):
        return page.evaluate(
            "name => plots.flatMap(p => p.data).filter(t => t.meta && t.meta.method === name"
            " && t.visible !== false).length", name,
        )  # fmt: skip

    before = {name: shown(name) for name in ("random", "tpe")}
    assert min(before.values()) > 0
    button = page.locator('.legend button[data-method="tpe"]')
    button.click()
    assert (shown("random"), shown("tpe")) == (before["random"], 0)
    assert button.get_attribute("aria-pressed") == "false"
    button.click()
    assert {name: shown(name) for name in before} == before
    button.dblclick()
    assert (shown("random"), shown("tpe")) == (0, before["tpe"])
    button.dblclick()
    assert {name: shown(name) for name in before} == before


@pytest.mark.slow
def test_curves_over_hours(page, findings):
    page.select_option("select.axis", "hours")
    shown = page.evaluate(
        "document.getElementById('curves-1').data"
        ".filter(t => t.visible && t.meta.method === 'tpe' && t.mode === 'lines')"
        ".map(t => [...t.x])"
    )
    expected = findings.boards[1].curves["hours"]["tpe"].at.tolist()
    assert shown == [expected, expected]
    title = page.evaluate("document.getElementById('curves-1').layout.xaxis2.title.text")
    assert title == "hours on the simulated clock"
    page.select_option("select.axis", "evaluations")


@pytest.mark.slow
def test_a_search_is_numbered_in_its_order(page, findings):
    found = findings.boards[1]
    run = next(run for run in found.runs["tpe"] if run.key.seed == 1)
    page.select_option('select.path[data-board="1"]', "tpe, seed 1")
    rows = found.landscape.space.rows(run.configurations).tolist()
    texts = page.locator("#path-1 tbody tr").all_inner_texts()
    assert [line.split("\t")[:2] for line in texts] == [
        [str(number), found.landscape.text(row)] for number, row in enumerate(rows, start=1)
    ]
    trace = page.evaluate(
        "(t => ({x: [...t.x], y: [...t.y], text: [...t.text]}))(document.getElementById('heat-1')"
        ".data.find(t => t.meta && t.meta.path))"
    )
    first = {row: number for number, row in reversed(list(enumerate(rows, start=1)))}
    assert trace["text"] == [str(first[row]) for row in dict.fromkeys(rows)]
    best = np.fmax.accumulate(np.nan_to_num(run.outcomes.throughput))
    better = [t + 1 for t in range(len(run)) if best[t] > (best[t - 1] if t else 0)]
    bold = page.locator("#path-1 tr.best td:first-child").all_inner_texts()
    assert bold == list(map(str, better))
    lines = page.evaluate(
        "document.getElementById('knobs-1').data.find(t => t.meta && t.meta.path).text"
        ".map(t => (t || '').trim()).filter(t => t)"
    )
    assert lines == list(map(str, better))
    page.select_option('select.path[data-board="1"]', "none")
    assert not page.locator("#path-1").is_visible()
    assert page.complaints == []


@pytest.mark.slow
def test_colour_may_be_memory(page):
    page.select_option('select.kind[data-board="0"]', "memory")
    assert page.evaluate(
        "document.getElementById('heat-0').data.filter(t => t.type === 'heatmap' && t.visible)"
        ".map(t => t.name)"
    ) == ["peak memory, GiB"]
    page.select_option('select.kind[data-board="0"]', "throughput")


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1400])
def test_nothing_sticks_out_of_a_narrow_or_a_wide_page(browser, written, width):
    page = opened(browser, written / "report.html", viewport={"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") == width
    for chart in page.locator(".chart").all():
        box, drawn = chart.bounding_box(), chart.locator(".main-svg").first.bounding_box()
        assert drawn["width"] == pytest.approx(box["width"], abs=2)
    cut = page.evaluate(
        """[...document.querySelectorAll('.chart')].flatMap(chart => {
            const box = chart.getBoundingClientRect();
            return [...chart.querySelectorAll('.xtitle, .ytitle, .legendtext')].filter(text => {
                const own = text.getBoundingClientRect();
                return own.left < box.left - 1 || own.right > box.right + 1;
            }).map(text => chart.id + ': ' + text.textContent);
        })"""
    )
    assert cut == []
    page.close()


@pytest.mark.slow
def test_the_theme_is_the_browsers(browser, written):
    seen = {}
    for scheme in ("light", "dark"):
        page = opened(browser, written / "report.html", color_scheme=scheme)
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        ink = page.evaluate(
            "getComputedStyle(document.querySelector('#curves-0 .ytick text')).fill"
        )
        seen[scheme] = (paper, ink)
        page.close()
    assert seen == {
        "light": ("rgb(255, 255, 255)", "rgb(26, 26, 26)"),
        "dark": ("rgb(21, 24, 28)", "rgb(232, 232, 232)"),
    }


@pytest.mark.slow
def test_in_print_it_is_light_whole_and_complete(browser, written):
    page = opened(browser, written / "report.html", color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    fills = page.evaluate("getComputedStyle(document.querySelector('#ranks .xtick text')).fill")
    assert fills == "rgb(26, 26, 26)"
    widths = page.evaluate("plots.map(p => p.querySelector('.main-svg').clientWidth)")
    assert set(widths) == {680}
    assert page.evaluate("[...document.querySelectorAll('details')].every(d => d.open)")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("plots[0].layout.width === undefined || plots[0].layout.width === null")
    page.close()


HOSTILE = [
    "<!--<script>", "</script><script>document.title = 'taken'</script>", "<b>bold</b>", "$x$ $y$",
    "%{y} &amp; \"q\" 'p'", "_hidden", "a" * 80,
]  # fmt: skip


@pytest.mark.slow
def test_names_are_shown_as_they_are(browser, made_runs, tmp_path):
    findings = find(collect(made_runs({name: [1, 2] for name in HOSTILE}, problem="<i>p</i>")))
    page = opened(browser, write_report(findings, tmp_path), viewport={"width": 390, "height": 900})
    assert page.title() == "parabolt: Optimizers compared"
    assert page.locator(".legend button").all_inner_texts() == list(findings.optimizers)
    assert page.locator(".leaderboard td:first-child").all_inner_texts() == HOSTILE
    assert page.locator("h2").first.inner_text() == "<i>p</i>"
    ticks = page.locator("#ranks .ytick text").all_text_contents()
    assert sorted(ticks) == sorted(n if len(n) <= 24 else n[:23] + "…" for n in HOSTILE)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.complaints == []
    page.close()
