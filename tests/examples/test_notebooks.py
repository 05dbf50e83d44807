"""Every numbered notebook runs in a Jupyter kernel, and its figures are right."""

import re
from inspect import cleandoc
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "examples"

#: What holds at the end of a notebook, as code that runs in its kernel.
HOLDS = {
    "08_landscape": """
        assert (len(X), ran.sum()) == (379, 339)  # the data-set card
        assert abs(best.throughput - 0.46958) < 5e-6
        assert abs(best.peak_memory_gib - 82.6) < 0.05
        assert n_within == {1: 1, 5: 2, 10: 4, 20: 18}  # counted in the published CSV file
        assert died_by_level("pp")[8] == 1.0
        assert throughput[stuck].max() == problem.optimum.value
        assert sorted(np.round(throughput[stuck] / problem.optimum.value, 2)) == [0.60, 0.68, 1.0]
    """,
    "09_compare_optimizers": """
        assert len(findings.runs) == 24
        assert progress.n_failed == 0
        regret = {score.optimizer: score.final_regret_percent for score in findings.scores}
        assert regret["parabolt"] <= regret["logeic"] < regret["random"]
        assert list(findings.ranking.mean_ranks)[-1] == "random"
        assert abs(sum(findings.ranking.mean_ranks.values()) - 6.0) < 1e-9
    """,
    "10_plan_a_cluster": """
        assert (plan.n_trials, revised.n_trials) == (0, 20)
        assert errors["after 20 trials"] < 0.05 < errors["specifications"]
        assert orders["specifications"] < 0.9 < orders["after 20 trials"]
        found = [problem.evaluate(entry.configuration) for entry in revised.entries]
        assert problem.optimum.value in [outcome.throughput for outcome in found]
        assert [str(outcome.status) for outcome in found].count("oom") == 1
    """,
}
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_numbered():
    assert [path.stem for path in NOTEBOOKS] == list(HOLDS)
    assert [path.name[:3] for path in NOTEBOOKS] == [f"{i:02d}_" for i in range(8, 11)]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell in cells:
        assert not cell.outputs, "outputs are not stored"
        assert cell.execution_count is None
    notebook.cells.append(nbformat.v4.new_code_cell(cleandoc(HOLDS[path.stem])))
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": tmp_path}}).execute()
    kinds = {kind for cell in cells for output in cell.outputs for kind in output.get("data", ())}
    assert kinds & {"image/png", "application/vnd.plotly.v1+json"}, "a picture"
    assert not list(tmp_path.iterdir()), "a notebook leaves no files"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_links(path):
    texts = [c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "markdown"]
    for target in re.findall(r"\]\(([^)]+)\)", "".join(texts)):
        assert (path.parent / target).exists(), target
