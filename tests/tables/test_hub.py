"""The real huggingface_hub against a local server that speaks the Hub's routes."""

import json
import os
import subprocess
import sys

import pytest

import parabolt
from parabolt.errors import MissingDependencyError, OptionError, TableError
from parabolt.tables.publishing.hub import PUBLISHED, HubAddress, Upload, fetch, push

REPO = "Glow-AI/pco32_tabular_data"
ADDRESS = HubAddress(REPO, "v0.1.0")

pytestmark = pytest.mark.needs("huggingface_hub")


@pytest.fixture
def cli(hub, tmp_path):
    """Runs the command line in a process whose Hub is the local server."""

    def run(*arguments, **environment):
        own = {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(tmp_path / "home")}
        return subprocess.run(
            [sys.executable, "-c", "from parabolt.cli.main import run; run()", *arguments],
            capture_output=True,
            text=True,
            env=os.environ | own | environment,
            check=False,
        )

    return run


def test_built_in_addresses():
    assert {name: str(address) for name, address in PUBLISHED.items()} == {
        "pco16": "hub:Glow-AI/pco16_tabular_data@v0.1.0",
        "pco32": "hub:Glow-AI/pco32_tabular_data@v0.1.0",
        "pco64": "hub:Glow-AI/pco64_tabular_data@v0.1.0",
    }


@pytest.mark.parametrize(
    "text", ["hub:Glow-AI/pco32_tabular_data", "hub:pco32@v1", "hub:a/b@", "hub:@v1", "hub:a/b@v 1"]
)
def test_an_address_needs_a_revision(text):
    with pytest.raises(OptionError, match="expected hub:ORG/NAME@REVISION"):
        parabolt.load_table(text)


def test_fetch_is_cached_and_names_the_commit(hub, original, published, tmp_path):
    commit = hub.publish(REPO, published(original("pco32")))
    first = fetch(ADDRESS, endpoint=hub.endpoint, cache=tmp_path / "cache")
    assert first.commit == commit
    assert first.version == f"{REPO}@v0.1.0 ({commit[:12]})"
    assert {"data.parquet", "README.md"} <= {path.name for path in first.folder.iterdir()}
    downloads = [path for method, path in hub.requests if method == "GET" and "/resolve/" in path]
    again = fetch(ADDRESS, endpoint=hub.endpoint, cache=tmp_path / "cache")
    assert again == first
    asked = [path for method, path in hub.requests if method == "GET" and "/resolve/" in path]
    assert asked == downloads
    by_commit = HubAddress(REPO, commit)
    assert fetch(by_commit, endpoint=hub.endpoint, cache=tmp_path / "cache").commit == commit


def test_a_wrong_revision_or_data_set(hub, original, published, tmp_path):
    hub.publish(REPO, published(original("pco32")))
    for address in (HubAddress(REPO, "v9"), HubAddress("nobody/nothing", "v0.1.0")):
        with pytest.raises(TableError, match=f"cannot fetch {address}"):
            fetch(address, endpoint=hub.endpoint, cache=tmp_path / "cache")


def test_a_truncated_download(hub, original, published, tmp_path):
    hub.publish(REPO, published(original("pco32")))
    hub.truncated = {"data.parquet"}
    with pytest.raises(TableError, match=r"cannot fetch hub:.*size"):
        fetch(ADDRESS, endpoint=hub.endpoint, cache=tmp_path / "cache")
    hub.truncated = set()
    assert fetch(ADDRESS, endpoint=hub.endpoint, cache=tmp_path / "cache").folder.exists()


def test_no_network(tmp_path, hub):
    closed = hub.endpoint
    hub.shutdown()
    hub.server_close()
    with pytest.raises(TableError, match="cannot fetch hub:"):
        fetch(ADDRESS, endpoint=closed, cache=tmp_path / "cache")


@pytest.mark.slow
def test_the_command_line_with_and_without_network(hub, cli, original, published):
    table = original("pco32")
    commit = hub.publish(REPO, published(table))
    offline = cli("table", "fetch", "pco32", HF_HUB_OFFLINE="1")
    assert offline.returncode == 2
    assert offline.stderr.startswith(f"error: cannot fetch {ADDRESS}")
    assert offline.stderr.count("\n") == 1
    assert hub.requests == []

    fetched = cli("table", "fetch", "pco32", "--json")
    assert fetched.returncode == 0, fetched.stderr
    found = json.loads(fetched.stdout)
    assert found["n_rows"] == 379
    assert found["content_hash"] == table.content_hash
    assert found["data_version"] == f"{REPO}@v0.1.0 ({commit[:12]})"

    # The original replaces the embedded table where it is asked for, also without network.
    hub.requests.clear()
    code = (
        "import parabolt; p = parabolt.load_problem('pco32', source='hub');"
        "q = parabolt.load_problem('pco32'); print(p.version, '|', q.version, '|', p == q)"
    )
    home = found["path"].split("/hub/")[0]
    offline = {"HF_ENDPOINT": hub.endpoint, "HF_HOME": home, "HF_HUB_OFFLINE": "1"}
    shown = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=True, env=os.environ | offline,
    )  # fmt: skip
    assert shown.stdout.strip() == f"{REPO}@v0.1.0 ({commit[:12]}) | v0.1.0+logs | False"
    assert hub.requests == []
    verified = cli("table", "verify", "pco32", "--source", "hub", HF_HUB_OFFLINE="1")
    assert verified.returncode == 0, verified.stdout
    assert "with its card" in verified.stdout
    differs = cli("table", "diff", "pco32", str(ADDRESS), HF_HUB_OFFLINE="1")
    assert differs.returncode == 1
    assert "columns of the second only: throughput_std" in differs.stdout


def test_a_table_that_contradicts_its_card_is_not_believed(hub, cli, original, published):
    folder = published(original("pco32"))
    card = folder / "README.md"
    card.write_text(card.read_text().replace("339 of 379", "340 of 379"))
    hub.publish(REPO, folder)
    fetched = cli("table", "fetch", "pco32")
    assert fetched.returncode == 2
    last = fetched.stderr.splitlines()[-1]  # after the bars of the download
    assert last.startswith("error: ")
    assert "contradicts its card: column ran_successfully: expected 339" in last
    verified = cli("table", "verify", "pco32", "--source", "hub", "--json")
    assert verified.returncode == 1
    (finding,) = json.loads(verified.stdout)["findings"]
    assert (finding["rule"], finding["expected"][:3], finding["found"]) == (
        "card_feasible", "339", "340",
    )  # fmt: skip


def test_a_table_of_another_instance_is_not_believed(hub, cli, original, published):
    hub.publish(REPO, published(original("pco64")))
    fetched = cli("table", "fetch", "pco32")
    assert fetched.returncode == 2
    assert fetched.stderr.splitlines()[-1].startswith("error: ")
    assert "Traceback" not in fetched.stderr


def test_a_foreign_table_brings_its_instance(hub, cli, original, published):
    hub.publish("me/own", published(original("pco64")), revision="main")
    verified = cli("table", "verify", "hub:me/own@main", "--json")
    assert verified.returncode == 0, verified.stderr
    assert json.loads(verified.stdout)["instance"] == "pco64"


def test_pco16_by_name(hub, cli, pco16_table, published):
    hub.publish("Glow-AI/pco16_tabular_data", published(pco16_table))
    fetched = cli("table", "fetch", "pco16", "--json")
    assert fetched.returncode == 0, fetched.stderr
    assert json.loads(fetched.stdout)["n_rows"] == len(pco16_table)


def test_push(hub, original, published, tmp_path):
    folder = published(original("pco32"))
    uploads = [Upload.of(path) for path in sorted(folder.iterdir())]
    url = push(uploads, "me/own", message="m", endpoint=hub.endpoint)
    assert url.endswith("/datasets/me/own/commit/" + "c" * 40)
    assert hub.pushed["me/own"] == {path.name: path.read_bytes() for path in folder.iterdir()}


def test_push_by_command_line(hub, cli, original, published):
    folder = published(original("pco32"))
    dry = cli("table", "push", str(folder), "--repo", "me/own", "--dry-run", "--json")
    assert dry.returncode == 0, dry.stderr
    assert hub.requests == []
    plan = json.loads(dry.stdout)
    assert plan["commit"] is None
    assert {f["name"]: f["n_bytes"] for f in plan["files"]} == {
        path.name: path.stat().st_size for path in folder.iterdir()
    }
    done = cli("table", "push", str(folder), "--repo", "me/own", HF_TOKEN="hf_local")
    assert done.returncode == 0, done.stderr
    assert hub.pushed["me/own"]["data.parquet"] == (folder / "data.parquet").read_bytes()
    card = folder / "README.md"
    card.write_text(card.read_text().replace("339 of 379", "340 of 379"))
    refused = cli("table", "push", str(folder), "--repo", "me/own", "--dry-run")
    assert refused.returncode == 1
    assert "card_feasible" in refused.stdout


def test_without_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'parabolt\[hub\]'"):
        fetch(ADDRESS)
