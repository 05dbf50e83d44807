import base64
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import parabolt
from parabolt.instances.catalogue import instance_text, load_instance
from parabolt.instances.search_space import SearchSpace
from parabolt.tables.publishing.build import build
from parabolt.tables.schema import context_values, table_columns
from parabolt.tables.table import Table

#: Order of the columns on the published cards.
OUTPUTS = (
    "ran_successfully", "throughput_mean", "throughput_std", "peak_mem_normalised", "overall_time",
    "all_time_steps", "peak_mem", "peak_mem_per_gpu",
)  # fmt: skip


def with_auxiliaries(data):
    """The columns that the published originals have and the embedded tables don't, invented.

    Four steps per run, the first of them slow; summaries as OPPA makes them.
    """
    feasible = data.column("ran_successfully").to_numpy()
    throughput = data.column("throughput_mean").to_numpy()
    peak = data.column("peak_mem").to_numpy()
    mean_s = 1.0 / throughput
    steps_s = mean_s[:, None] * np.array([2.5, 0.99, 1.0, 1.01])
    std_s = steps_s[:, 1:].std(axis=1)
    columns = {name: data.column(name) for name in data.column_names if "source_" not in name}
    columns["throughput_std"] = pa.array(std_s / np.sqrt(3) * throughput**2)
    columns["overall_time"] = pa.array(steps_s.sum(axis=1) + 1.0)
    columns["all_time_steps"] = pa.array(
        [str(row) if ok else "[nan]" for row, ok in zip(steps_s.tolist(), feasible, strict=True)]
    )
    columns["peak_mem_per_gpu"] = pa.array([f"[{p * 0.9}, {p}, {p * 0.95}]" for p in peak.tolist()])
    inputs = [name for name in columns if name not in OUTPUTS]
    return pa.table({name: columns[name] for name in (*inputs, *OUTPUTS)})


def invented(instance, *, seed=0, share_feasible=0.7):
    """An invented table over the whole lattice of an instance."""
    space = SearchSpace.lattice(instance)
    rng = np.random.default_rng(seed)
    n = len(space)
    feasible = rng.random(n) < share_feasible
    peak = np.where(feasible, instance.cluster.memory_gib * rng.uniform(0.2, 0.98, n), np.inf)
    columns = instance.encoding.cells(instance.encoding.configurations(space.encoded))
    columns |= {name: np.full(n, value) for name, value in context_values(instance).items()}
    columns |= {
        "ran_successfully": feasible,
        "throughput_mean": np.where(feasible, rng.uniform(0.05, 0.5, n), np.nan),
        "peak_mem": peak,
        "peak_mem_normalised": np.where(feasible, peak / instance.cluster.memory_gib - 1.0, 0.2),
    }
    order = [column.name for column in table_columns(instance) if column.name in columns]
    return pa.table({name: columns[name] for name in order})


@pytest.fixture
def original():
    """A full export in the form of the published originals, by name of its instance."""

    def make(name):
        table = parabolt.load_table(name)
        return Table(with_auxiliaries(table.data), table.instance, version="v0.1.0")

    return make


@pytest.fixture
def pco16_table():
    instance = load_instance("pco16")
    return Table(with_auxiliaries(invented(instance)), instance)


@pytest.fixture
def published(tmp_path):
    """Builds the directory that a publisher uploads, from a table."""

    def make(table, folder="published"):
        name = table.instance.name
        sweep = tmp_path / f"{name}.csv"
        table.to_csv(sweep)
        out = tmp_path / folder
        about = {"title": "T", "license": "mit", "version": "v0.1.0"}
        build(sweep, table.instance, out, instance_text=instance_text(name), **about)
        return out

    return make


class FakeHub(ThreadingHTTPServer):
    """A local server that speaks the Hub's routes for data sets, to the real huggingface_hub.

    Attributes:
        repos: Data set to revision to file name to bytes; a revision may be a commit or a tag.
        truncated: File names that are cut short on the way.
        requests: Method and path of what was asked.
        pushed: Data set to file name to bytes, as committed.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Routes)
        self.repos, self.truncated, self.requests, self.pushed = {}, set(), [], {}

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.server_port}"

    def publish(self, repo, folder, revision="v0.1.0"):
        files = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
        self.repos.setdefault(repo, {})[revision] = files
        return self.commit(repo, revision)

    def commit(self, repo, revision):
        """Commit of a revision: a hash of its files, as on the real Hub."""
        digest = hashlib.sha1(repo.encode())
        for name, content in sorted(self.repos[repo][revision].items()):
            digest.update(name.encode() + content)
        return digest.hexdigest()

    def find(self, repo, revision):
        revisions = self.repos[repo]
        by_commit = {self.commit(repo, name): files for name, files in revisions.items()}
        return by_commit.get(revision, revisions.get(revision))


class _Routes(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    _FILE = re.compile(r"/datasets/([^/]+/[^/]+)/resolve/([^/]+)/(.+)")
    _API = re.compile(r"/api/datasets/([^/]+/[^/]+)/(revision|tree|preupload|commit)/([^/?]+)")

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self._file(with_body=False)

    def do_GET(self):
        match = self._API.match(self.path)
        if match is None:
            self._file(with_body=True)
            return
        self.server.requests.append((self.command, self.path))
        repo, what, revision = match.groups()
        files = self._files(repo, revision)
        if files is None:
            return
        if what == "revision":
            self._json({"id": repo, "sha": self._commit(repo, revision), "siblings": []})
        else:
            entries = [
                {"type": "file", "path": n, "size": len(c), "oid": hashlib.sha1(c).hexdigest()}
                for n, c in files.items()
            ]
            self._json(entries)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.command, self.path))
        if self.path == "/api/repos/create":
            about = json.loads(body)
            repo = f"{about.get('organization', 'me')}/{about['name']}"
            self.server.pushed.setdefault(repo, {})
            self._json({"url": f"{self.server.endpoint}/datasets/{repo}", "id": repo, "name": repo})
            return
        if self.path == "/api/validate-yaml":
            self._json({"errors": [], "warnings": []})
            return
        repo, what, _ = self._API.match(self.path).groups()
        if what == "preupload":
            files = [
                {"path": f["path"], "uploadMode": "regular", "shouldIgnore": False, "oid": None}
                for f in json.loads(body)["files"]
            ]
            self._json({"files": files})
            return
        for line in body.decode().splitlines():
            item = json.loads(line)
            if item["key"] == "file":
                content = base64.b64decode(item["value"]["content"])
                self.server.pushed[repo][item["value"]["path"]] = content
        url = f"{self.server.endpoint}/datasets/{repo}/commit/{'c' * 40}"
        self._json({"success": True, "commitOid": "c" * 40, "commitUrl": url})

    def _commit(self, repo, revision):
        for name in self.server.repos[repo]:
            if revision in (name, self.server.commit(repo, name)):
                return self.server.commit(repo, name)
        raise KeyError(revision)

    def _files(self, repo, revision):
        if repo not in self.server.repos:
            self._error("RepoNotFound")
            return None
        files = self.server.find(repo, revision)
        if files is None:
            self._error("RevisionNotFound")
        return files

    def _file(self, *, with_body):
        self.server.requests.append((self.command, self.path))
        repo, revision, name = self._FILE.match(self.path).groups()
        files = self._files(repo, revision)
        if files is None:
            return
        if name not in files:
            self._error("EntryNotFound")
            return
        content = files[name]
        self.send_response(200)
        self.send_header("X-Repo-Commit", self._commit(repo, revision))
        self.send_header("ETag", f'"{hashlib.sha1(content).hexdigest()}"')
        if with_body and name in self.server.truncated:
            content = content[: len(content) // 2]
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if with_body:
            self.wfile.write(content)

    def _error(self, code):
        self.send_response(404)
        self.send_header("X-Error-Code", code)
        self.send_header("X-Error-Message", code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _json(self, value):
        content = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def hub():
    server = FakeHub()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()
