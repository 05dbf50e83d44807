"""Pages that are made when the documentation is built: the interactive report of the grid."""

from __future__ import annotations

from typing import Any

from mkdocs.structure.files import File

from parabolt.analysis.findings import find
from parabolt.analysis.page import write_page
from parabolt.experiments.packed import published_files
from parabolt.experiments.results import read_results

#: Page to the published study that it shows.
REPORTS = {"reports/grid.html": "grid"}


def on_files(files: Any, *, config: Any) -> Any:
    """Adds the reports, so that pages can link to them."""
    stores = {path.stem: path for path in published_files()}
    for uri, name in REPORTS.items():
        page = write_page(find(read_results([stores[name]]), against="parabolt"))
        files.append(File.generated(config, uri, content=page))
    return files
