import csv
import json
import re
import struct
import sys

import pytest

import parabolt
from parabolt.analysis.charts import curve_chart
from parabolt.analysis.figures import style_of
from parabolt.analysis.report import write_report
from parabolt.experiments.runner import run_study
from parabolt.experiments.store import RunStore
from parabolt.experiments.study import OptimizerChoice, Study


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
def runs(folder):
    return RunStore(folder).load_all()


def test_page_holds_the_leaderboard_and_what_it_was_run_on(runs, tmp_path):
    text = write_report(runs, tmp_path).read_text(encoding="utf-8")
    body = text[text.rindex("</script></head>") :]
    assert re.findall(r"<h2>(pco\d\d)</h2>", body) == ["pco32", "pco64"]
    assert len(re.findall(r"<tr><td>(random|tpe|logeic)</td><td>\d/3</td>", body)) == 6
    assert "data v0.1.0+logs, SHA-256 3c4334851441" in body
    assert re.findall(r"src=|href=\"http", body) == []


def test_optimizers_that_end_equally_are_all_named(run_of, tmp_path):
    made = [run_of([0.1, 0.2, 0.4], name=name, problem="mine") for name in ("a", "b")]
    made.append(run_of([0.1, 0.2, 0.3], name="c", problem="mine"))
    summary = write_report(made, tmp_path).read_text(encoding="utf-8").split("<h2>")[0]
    assert (
        "20.00 % below it at the end: <b>a</b> (found in 0 of 1 runs), <b>b</b> (found" in summary
    )


def test_styles_tell_28_optimizers_apart():
    assert len({style_of(number) for number in range(28)}) == 28


def test_bands_of_many_optimizers_are_shown_on_demand(run_of):
    made = [run_of([0.1, 0.2, 0.4], name=f"o{n}") for n in range(8)]
    for n_optimizers, opacities in ((6, {0.12}), (8, {0.0})):
        figure = curve_chart(made[:n_optimizers])
        bands = [number for number, t in enumerate(figure.data) if t.fill == "toself"]
        assert {figure.data[number].opacity for number in bands} == opacities
    (menu,) = figure.layout.updatemenus
    assert menu.buttons[1].args == ({"opacity": 0.12}, tuple(bands))


def test_other_formats_say_the_same(runs, tmp_path):
    write_report(runs, tmp_path, formats=["md", "csv", "tex", "png", "pdf"])
    markdown = (tmp_path / "report.md").read_text()
    rows = list(csv.DictReader((tmp_path / "report.csv").open()))
    latex = (tmp_path / "report.tex").read_text()
    assert len(rows) == 6
    for row in rows:
        shown = f"{float(row['final_regret_percent']):.2f} ["
        assert f"| {row['optimizer']} | {row['n_found']}/3 |" in markdown
        assert shown in markdown
        assert shown in latex
    assert latex.count(r"\begin{tabular}") == 2
    assert (tmp_path / "report.pdf").read_bytes()[:5] == b"%PDF-"
    data = (tmp_path / "report.png").read_bytes()
    width, height = struct.unpack(">II", data[16:24])
    assert width > 1000
    assert height > 600


def test_unknown_formats_and_places(runs, tmp_path):
    with pytest.raises(parabolt.OptionError, match=r"expected one of html, md, .*got docx"):
        write_report(runs, tmp_path, formats=["docx"])
    (tmp_path / "file").write_text("")
    with pytest.raises(parabolt.ParaboltError, match=r"cannot write .*report\.md"):
        write_report(runs, tmp_path / "file", formats=["md"])


def test_without_the_libraries_it_says_what_to_install(runs, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(parabolt.MissingDependencyError, match=r"pip install 'parabolt\[plot\]'"):
        write_report(runs, tmp_path, formats=["png"])
    for name in ("parabolt.analysis.charts", "parabolt.analysis.landscape"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(parabolt.MissingDependencyError, match=r"pip install 'parabolt\[report\]'"):
        write_report(runs, tmp_path)


def test_runs_of_an_unknown_problem_have_no_landscape_and_say_so(run_of, tmp_path):
    made = [run_of([0.1, 0.2, 0.5], name=n, problem="mine") for n in ("a", "b")]
    text = write_report(made, tmp_path).read_text(encoding="utf-8")
    assert "No landscape of mine: its table is not here." in text


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


@pytest.fixture
def page(browser, runs, tmp_path):
    """The report in a real browser; complaints and requests are kept."""
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.complaints, page.requests = [], []
    page.on("console", lambda message: page.complaints.append(message.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("request", lambda request: page.requests.append(request.url))
    page.goto(write_report(runs, tmp_path).as_uri())
    page.wait_for_selector("#knobs-pco64 .scatterlayer .trace")
    yield page
    page.close()


def test_charts_are_drawn_without_complaint_or_request(page):
    for name in ("curves", "ranks", "outcomes", "profile", "heat-pco32", "knobs-pco64"):
        assert page.locator(f"#{name} .main-svg").count() > 0, name
    drawn = page.locator("#curves .scatterlayer .trace .js-line").count()
    assert drawn >= 2 * 3 * 2  # two problems, three optimizers, two rows
    assert page.locator("#heat-pco64 .heatmaplayer image").count() >= 1
    assert page.complaints == []
    assert len(page.requests) == 1
    assert page.requests[0].startswith("file://")


def test_hovering_tells_the_value(page):
    box = page.locator("#curves .subplot.xy .plot, #curves .xy").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_function("document.querySelector('#curves .hoverlayer').textContent != ''")
    text = page.locator("#curves .hoverlayer").text_content()
    for name in ("random", "tpe", "logeic"):
        assert name in text
    assert "median regret" in text


def test_the_legend_filters_both_rows(page):
    def hidden():
        return page.evaluate(
            "document.getElementById('curves').data"
            ".filter(t => t.visible === 'legendonly').map(t => t.name)"
        )

    assert hidden() == []
    page.locator("#curves .legend .traces .legendtoggle").first.click()
    page.wait_for_function(
        "document.getElementById('curves').data.some(t => t.visible === 'legendonly')"
    )
    assert len(hidden()) == 6  # band, line and share, on two problems
    assert len(set(hidden())) == 1


def test_choosing_a_run_draws_its_path(page, runs):
    wanted = ("pco64", "tpe", 1)
    run = next(r for r in runs if (r.key.problem, r.key.optimizer, r.key.seed) == wanted)
    page.select_option("select.path[data-problem=pco64]", "tpe, seed 1")
    x = page.evaluate(
        "document.getElementById('heat-pco64').data.find(t => t.name === 'path of the run').x"
    )
    assert len(x) == len(run) == 18
    first = run.configurations[0]
    assert x[0] == f"dp{first.dp} tp{first.tp} pp{first.pp} cp{first.cp}"
    knobs = page.evaluate(
        "document.getElementById('knobs-pco64').data.find(t => t.name === 'path of the run').y"
    )
    assert len(knobs) == 18 * 9
    page.select_option("select.path[data-problem=pco64]", "no run")
    assert page.complaints == []


def test_overlaid_runs_stand_beside_the_others(folder, tmp_path):
    import subprocess

    done = subprocess.run(
        [sys.executable, "-c", "from parabolt.cli.main import run; run()", "report", str(folder),
         "--format", "md,csv", "--out", str(tmp_path), "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert len(json.loads(done.stdout)["leaderboard"]) == 6
