"""Pages that are made when the documentation is built: the interactive reports of the grid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

from parabolt.analysis.findings import find
from parabolt.analysis.page import write_page
from parabolt.experiments.packed import published_files, read_packed
from parabolt.experiments.results import read_results

#: Page to the published study that it shows.
REPORTS = {"reports/grid.html": "grid"}
#: The grid on the suite, and the instances of it that are shown: all 19 would be a page of 20 MB.
SUITE_REPORT, SUITE_RUNS = "reports/uscale.html", "data/uscale.parquet"
SHOWN = ("uscale-1b-64", "uscale-8b-64", "uscale-80b-64")


def on_files(files: Any, *, config: Any) -> Any:
    """Adds the reports, so that pages can link to them."""
    stores = {path.stem: path for path in published_files()}
    for uri, name in REPORTS.items():
        page = write_page(find(read_results([stores[name]]), against="parabolt"))
        files.append(File.generated(config, uri, content=page))
    store = Path(config["docs_dir"]) / SUITE_RUNS
    keys = [run.key for run in read_packed(store)[0] if run.key.problem in SHOWN]
    page = write_page(find(read_results([store], only=keys), against="parabolt"))
    files.append(File.generated(config, SUITE_REPORT, content=page))
    return files
