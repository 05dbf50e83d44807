"""The page on additions: its blocks, applied to a copy of the package, add what they say."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "extend.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```diff title=\"([^\"]+)\"\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SECTIONS = {
    title.lower(): text
    for title, text in re.findall(r"^## (A \w+)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
}


def changes(section):
    """File, the text that is there, and the text that takes its place, of each block."""
    for file, block in BLOCK.findall(section):
        lines = block.splitlines(keepends=True)
        assert all(line[0] in "+ " for line in lines), block
        before = "".join(line[1:] for line in lines if line[0] == " ")
        yield file, before, "".join(line[1:] for line in lines)


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """A copy of the package with all additions."""
    folder = tmp_path_factory.mktemp("extended")
    ignored = shutil.ignore_patterns("__pycache__", "*.parquet")
    shutil.copytree(ROOT / "src", folder / "src", ignore=ignored)
    for file, before, after in changes(PAGE):
        path = folder / file
        if before:
            text = path.read_text(encoding="utf-8")
            assert text.count(before) == 1, (file, before)
            path.write_text(text.replace(before, after), encoding="utf-8")
        else:
            assert not path.exists()
            path.write_text(after, encoding="utf-8")
    return folder


@pytest.mark.parametrize("addition", SECTIONS)
def test_files_and_lines_are_those_of_the_table(addition):
    found = [*changes(SECTIONS[addition])]
    added = [
        line
        for _, block in BLOCK.findall(SECTIONS[addition])
        for line in block.splitlines()
        if line.startswith("+") and line.strip("+ ")
    ]
    row = next(r for r in PAGE.splitlines() if r.lower().startswith(f"| [{addition}]"))
    _, _, n_files, n_lines = (cell.strip() for cell in row.strip("|").split("|"))
    assert int(n_files.split(",")[0]) == len({file for file, *_ in found})
    assert int(n_lines) == len(added)
    assert set(SECTIONS) == {"a knob", "a gpu", "a model", "a framework"}


def test_what_they_add(extended, tmp_path):
    script = """
import json
from parabolt.frameworks.measurements import Measurements
from parabolt.frameworks.registry import log_format, launching_framework
from parabolt.instances.catalogue import instance_from_document
from parabolt.instances.hardware import Hardware
from parabolt.instances.search_space import SearchSpace
from parabolt.planner.knob_words import parse_knobs
from parabolt.space.configuration import Configuration

document = {
    "name": "x", "model": "own-7b", "cluster": "2x8 x100", "dialect": "swift-train",
    "workload": {"sequence_length": 4096, "batch_size": 16, "micro_batch_size": 1},
    "knobs": {"dp": [1, 2, 4, 8], "tp": [2, 4, 8, 16], "pp": [1, 2], "stripes": [1, 4],
              "bucket": [64]},
}
instance = instance_from_document(document, origin="x")
space = SearchSpace.lattice(instance)
c = Configuration(dp=4, tp=4, bucket=64)
try:
    instance.check(Configuration(dp=4, tp=2, pp=2, bucket=64))
except Exception as error:
    reason = str(error)
found = Measurements()
log_format("swift-train").read(["swift step 3: 1.5 s\\n"], 0, instance, found)
framework = launching_framework("swift-train")
print(json.dumps({
    "parameters": instance.model.n_parameters,
    "peak": Hardware.of(instance.cluster).peak_flop_per_s,
    "memory": instance.cluster.memory_gib,
    "sizes": sorted({(c.dp, c.tp, c.pp, c.stripes) for c in space.candidates}),
    "text": str(Configuration(dp=4, bucket=64, stripes=4)),
    "words": parse_knobs(["stripes=2,4"])["stripes"],
    "reason": reason,
    "steps": found.step_times_s,
    "flags": framework.launch(instance, c).flags,
    "lost": framework.launch(instance, Configuration(dp=4, tp=4, bucket=64, stripes=4)).reason,
}))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, check=False, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(extended / "src")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    # Llama 3 8B with 32 x (2 x 4096 x 5120 + 3 x 4096 x 14336) and two tables of 128256 x 4096.
    assert found["parameters"] == 32 * (2 * 4096 * 5120 + 3 * 4096 * 14336) + 2 * 128256 * 4096
    assert (found["peak"], found["memory"]) == (1.2e15, 127.5)
    # 16 GPUs without pipelines; 16 does not divide the 8 key-value heads.
    assert found["sizes"] == sorted(
        [dp, tp, 1, stripes] for dp, tp in ((8, 2), (4, 4), (2, 8)) for stripes in (1, 4)
    )
    assert found["text"].endswith("chunks1 stripes4")
    assert found["words"] == [2, 4]
    assert "it has no pipeline" in found["reason"]
    assert found["steps"] == {"3": 1.5}
    assert found["flags"] == ["--tp 4", "--micro 1"]
    assert found["lost"] == "stripes4: Swift Train 1.2 has no setting for it here"
