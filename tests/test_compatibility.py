"""Files of version 0.1 are read by this version, and by one that has a knob and a term more.

The files in `data/v0_1` were made by version 0.1 and are never made anew. The later version is a
copy of the package with one line added for a knob, and one for a term of the cost model.
"""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

DATA = Path(__file__).parent / "data"
OLD = DATA / "v0_1"
SRC = Path(__file__).parents[1] / "src"

#: File, the line that a new one is put before, and the new one.
KNOB = (
    "parabolt/space/knobs.py",
    "    def __post_init__(self) -> None:\n",
    '    stripes: int = knob("stripes of a tensor", Log2(), "log2_num_stripes", default=1)\n',
)
TERM = (
    "parabolt/costmodel/step_time.py",
    '    Term("matmul", ',
    '    Term("stripes", compute.matmul, 0.01, 0.5, "share of stripes"),\n',
)


@pytest.fixture(scope="module")
def later(tmp_path_factory):
    """Where the later version lies."""
    folder = tmp_path_factory.mktemp("later")
    shutil.copytree(
        SRC, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
    )
    for file, before, line in (KNOB, TERM):
        text = (folder / file).read_text(encoding="utf-8")
        assert text.count(before) == 1, file
        (folder / file).write_text(text.replace(before, line + before), encoding="utf-8")
    return folder


@pytest.fixture(params=["this version", "a later one"])
def answers_of(request, later, tmp_path):
    """Runs code that ends in `answer(...)` in either version, and gives what it answered."""

    def run(code):
        source = SRC if request.param == "this version" else later
        script = (
            "import json, sys\nfrom pathlib import Path\nimport numpy as np\nimport parabolt\n"
            f"OLD, DATA = Path({str(OLD)!r}), Path({str(DATA)!r})\n"
            "def answer(**values): print('ANSWER', json.dumps(values))\n" + code
        )
        environment = {**os.environ, "PYTHONPATH": str(source)}
        done = subprocess.run(
            [sys.executable, "-c", script], cwd=tmp_path, env=environment, check=False,
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.split("ANSWER ")[1])

    return run


def test_a_stored_run(answers_of):
    found = answers_of(
        "from parabolt.experiments.store import RunStore\n"
        "run = RunStore('.').load(OLD / 'run.parquet')\n"
        "answer(text=[str(c) for c in run.configurations], observed=run.observed.tolist(),\n"
        "       seed=run.key.seed, statuses=run.outcomes.status.tolist())"
    )
    raw = pq.read_table(OLD / "run.parquet").to_pylist()
    names = ("dp", "tp", "pp", "cp", "sp", "bucket", "zero", "chunks")
    assert found["text"] == [" ".join(f"{name}{row[name]}" for name in names) for row in raw]
    assert found["observed"] == [row["observed_throughput"] for row in raw]
    assert found["seed"] == 0
    assert len(raw) == 13


def test_a_published_table_with_its_card(answers_of):
    found = answers_of(
        "from parabolt.tables.sources import load_table, locate\n"
        "folder = OLD / 'table'\n"
        "table = load_table(folder)\n"
        "answer(findings=[str(f) for f in locate(folder).verify().findings.first(9)],\n"
        "       text=[str(c) for c in table.space.candidates],\n"
        "       throughput=table.outcomes.throughput.tolist())"
    )
    assert found["findings"] == []
    raw = pq.read_table(OLD / "table" / "data.parquet").to_pylist()
    assert found["throughput"] == [row["throughput_mean"] for row in raw]
    assert found["text"][0] == "dp1 tp4 pp1 cp1 sp1 bucket2 zero0 chunks1"
    assert len(found["text"]) == 12


def test_the_original_cards(answers_of):
    found = answers_of(
        "from parabolt.tables.checks.verification import check_card\n"
        "from parabolt.tables.publishing.card import parse_card\n"
        "from parabolt.tables.publishing.facts import TableFacts\n"
        "from parabolt.tables.reading.conversion import convert\n"
        "from parabolt.tables.sources import load_table\n"
        "differ = {}\n"
        "for name in ('pco32', 'pco64'):\n"
        "    card = parse_card((DATA / f'{name}_card.md').read_text(), origin=name)\n"
        "    table = load_table(name)\n"
        "    facts = TableFacts.of(convert(table.data, np.arange(len(table)), table.instance),\n"
        "                          table.instance)\n"
        "    differ[name] = sorted({f.rule for g in check_card(card, facts,\n"
        "        tuple(table.data.column_names), table.instance) for f in g})\n"
        "answer(**differ)"
    )
    # The embedded tables leave out two columns of texts that the originals have.
    assert found["pco32"] in ([], ["card_columns"])
    assert found["pco64"] in ([], ["card_columns"])


def test_a_journal_goes_on(answers_of, tmp_path):
    shutil.copytree(OLD / "tune", tmp_path / "tune")
    shutil.copy(OLD / "instance.toml", tmp_path)
    found = answers_of(
        "from parabolt.trials.spec.file import load_spec\n"
        "from parabolt.trials.tune import tune\n"
        "history = tune(load_spec(Path('tune/tune.toml')), Path('tune'))\n"
        "answer(text=[str(t.configuration) for t in history.trials])"
    )
    assert found["text"][:2] == [
        "dp4 tp1 pp1 cp1 sp1 bucket16 zero0 chunks1", "dp2 tp2 pp1 cp1 sp1 bucket16 zero2 chunks1",
    ]  # fmt: skip
    assert len(found["text"]) == 3
    lines = (tmp_path / "tune" / "journal.jsonl").read_text().splitlines()
    assert lines[:7] == (OLD / "tune" / "journal.jsonl").read_text().splitlines()


def test_a_journal_of_another_spec_does_not_go_on(answers_of, tmp_path):
    shutil.copytree(OLD / "tune", tmp_path / "tune")
    text = (OLD / "instance.toml").read_text()
    (tmp_path / "instance.toml").write_text(text.replace("batch_size = 8", "batch_size = 16"))
    found = answers_of(
        "from parabolt.trials.spec.file import load_spec\n"
        "from parabolt.trials.tune import tune\n"
        "try: tune(load_spec(Path('tune/tune.toml')), Path('tune'))\n"
        "except parabolt.ParaboltError as error: answer(error=str(error))"
    )
    assert "was begun with another instance" in found["error"]


def test_a_saved_calibration(answers_of):
    found = answers_of(
        "from parabolt.costmodel.calibration.file import load_calibration\n"
        "found = load_calibration(OLD / 'calibration.toml')\n"
        "beliefs = {'time': found.time, 'memory': found.memory, 'crash': found.failures.crash}\n"
        "answer(names={part: b.names for part, b in beliefs.items()},\n"
        "       mean={part: b.mean.tolist() for part, b in beliefs.items()},\n"
        "       covariance={part: b.covariance.tolist() for part, b in beliefs.items()})"
    )
    raw = tomllib.loads((OLD / "calibration.toml").read_text())
    for part in ("time", "memory", "crash"):
        places = [found["names"][part].index(name) for name in raw[part]["names"]]
        assert np.array(found["mean"][part])[places].tolist() == raw[part]["mean"]
        covariance = np.array(found["covariance"][part])
        assert covariance[np.ix_(places, places)].tolist() == raw[part]["covariance"]
    for name in set(found["names"]["time"]) - set(raw["time"]["names"]):
        # What the prior says of a coefficient that the file doesn't know: here, of a share of 0.01.
        place = found["names"]["time"].index(name)
        row = np.array(found["covariance"]["time"])[place]
        if name == "stripes":
            assert found["mean"]["time"][place] == pytest.approx(np.log(0.01))
            assert row[place] == pytest.approx(0.25)
        assert np.flatnonzero(row).tolist() == [place]


def test_an_instance(answers_of):
    found = answers_of(
        "from parabolt.instances.catalogue import load_instance\n"
        "from parabolt.instances.search_space import SearchSpace\n"
        "space = SearchSpace.lattice(load_instance(str(OLD / 'instance.toml')))\n"
        "answer(encoded=space.encoded.tolist(), labels=space.instance.encoding.labels)"
    )
    assert found["labels"] == ["dp_log2", "tp_log2", "bucket_log2", "zero_ordinal"]
    assert found["encoded"] == [
        [dp, 2 - dp, bucket, zero] for dp in (0, 1, 2) for bucket in (1, 4) for zero in (0, 1)
    ]


def in_the_later_version(later, code, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", "import json, parabolt\nimport numpy as np\n" + code], cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(later)}, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.needs("optuna")
def test_one_line_is_a_knob_everywhere(later, tmp_path):
    """Texts, stores, tables, optimizers and adapters know a knob by its one line."""
    text = (OLD / "instance.toml").read_text() + "stripes = [1, 2, 4]\n"
    (tmp_path / "striped.toml").write_text(text)
    out = in_the_later_version(
        later,
        "from parabolt.experiments.protocol import Protocol\n"
        "from parabolt.experiments.run import RunKey, execute\n"
        "from parabolt.experiments.store import RunStore\n"
        "from parabolt.instances.catalogue import load_instance\n"
        "from parabolt.instances.search_space import SearchSpace\n"
        "from parabolt.integrations.box import CandidateBox\n"
        "from parabolt.problems.tabular import TabularProblem\n"
        "from parabolt.tables.schema import context_values, table_columns\n"
        "from parabolt.tables.table import Table\n"
        "import pyarrow as pa\n"
        "two = parabolt.Configuration(dp=4, bucket=2, stripes=2)\n"
        "assert str(two).endswith('chunks1 stripes2')\n"
        "assert parabolt.Configuration.parse(str(two)) == two\n"
        "assert two.as_dict()['stripes'] == 2\n"
        "instance = load_instance('striped.toml')\n"
        "space = SearchSpace.lattice(instance)\n"
        "assert len(space) == 36\n"
        "n = len(space)\n"
        "rng = np.random.default_rng(0)\n"
        "data = pa.table({**instance.encoding.cells(\n"
        "    instance.encoding.configurations(space.encoded)),\n"
        "    **{k: [v] * n for k, v in context_values(instance).items()},\n"
        "    'ran_successfully': [True] * n, 'throughput_mean': rng.uniform(1, 2, n),\n"
        "    'peak_mem': [0.5] * n})\n"
        "assert 'log2_num_stripes' in data.column_names\n"
        "problem = TabularProblem(Table(data, instance))\n"
        "for name in ('random', 'lognei+prior', 'tpe', 'cmaes'):\n"
        "    run = execute(problem, RunKey.of(problem, name, 0, Protocol(n_evaluations=4)))\n"
        "    assert set(run.configurations.stripes.tolist()) == {1, 2, 4}\n"
        "store = RunStore('store')\n"
        "assert store.load(store.save(run)).configurations == run.configurations\n"
        "box = CandidateBox(space)\n"
        "assert box.sizes['stripes'] == [1, 2, 4] and box.levels['stripes_log2'] == (0, 2)\n"
        "print('good')",
        tmp_path,
    )
    assert out.strip() == "good"


def test_a_value_that_is_not_neutral_is_always_written(later, tmp_path):
    text = (OLD / "instance.toml").read_text() + "stripes = [2]\n"
    (tmp_path / "striped.toml").write_text(text)
    out = in_the_later_version(
        later,
        "from parabolt.instances.catalogue import load_instance\n"
        "from parabolt.tables.schema import context_values\n"
        "from parabolt.space.configurations import Configurations\n"
        "instance = load_instance('striped.toml')\n"
        "assert context_values(instance)['log2_num_stripes'] == 1\n"
        "many = Configurations({'dp': [1, 2], 'bucket': 64, 'stripes': 2})\n"
        "assert many.plain()['stripes'].tolist() == [2, 2]\n"
        "assert 'stripes' not in Configurations({'dp': [1, 2], 'bucket': 64}).plain()\n"
        "print('good')",
        tmp_path,
    )
    assert out.strip() == "good"
