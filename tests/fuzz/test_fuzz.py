"""Every boundary takes hostile input: one error of one line, or a result that is read back equal.

A boundary is a place where parabolt takes what somebody else wrote. `make test` tries a few inputs
at each, the slow tests many more.
"""

import csv
import io
import json
import math
import tempfile
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import parabolt
from fuzz.mutations import contents, documents, texts
from parabolt.costmodel.calibration.file import load_calibration, save_calibration
from parabolt.errors import ParaboltError
from parabolt.experiments.progress import read_progress
from parabolt.experiments.store import RunStore, run_from_arrow, run_to_arrow
from parabolt.experiments.study import parse_study, study_of
from parabolt.frameworks.measurements import Measurements, ReportError
from parabolt.frameworks.registry import log_format
from parabolt.instances.catalogue import (
    instance_document,
    instance_from_document,
    instance_text,
    load_instance,
    parse_instance,
)
from parabolt.instances.cluster_words import parse_cluster
from parabolt.instances.config_json import parse_config
from parabolt.instances.models import load_model
from parabolt.instances.search_space import SearchSpace
from parabolt.journal.file import JOURNAL, read_journal
from parabolt.journal.history import TrialHistory
from parabolt.optimizers.registry import make_optimizer
from parabolt.planner.past_trials import optimizer_options
from parabolt.planner.trials_file import read_trials
from parabolt.space.knobs import KNOBS
from parabolt.tables.publishing.card import parse_card
from parabolt.trials.measurements import ReportReader
from parabolt.trials.spec.file import parse_spec

DATA = Path(__file__).parents[1] / "data"
LOGS = Path(__file__).parents[1] / "frameworks" / "logs"
SMALL = load_instance(str(Path(__file__).parents[1] / "trials" / "small.toml"))
SPACE = SearchSpace.lattice(SMALL)

SPEC = """
instance = "pco16"
command = ["python", "train.py", "{configuration}", "--mem", "{memory_gib}"]
[environment]
STEPS = "{steps}"
[trial]
warmup_steps = 1
timed_steps = 5
time_limit_s = 600
retries = 2
log_format = "patterns"
patterns = ['it (?P<step>[0-9]+): (?P<milliseconds>[0-9.]+) ms']
[launcher]
kind = "local"
gpus = [0, 1]
[budget]
trials = 20
gpu_hours = 3.5
[optimizer]
name = "logeic"
seed = 3
n_initial = 6
[early_termination]
threshold = 0.1
"""
STUDY = {
    "problems": ["pco32"],
    "optimizers": ["random", {"name": "logeic", "label": "x", "options": {"n_initial": 5}}],
    "seeds": [0, 1],
    "protocol": {"n_evaluations": 30, "repeats": "avoid", "noise": 0.01},
    "executor": "local:2",
}
TRIALS = (
    "instance,dp,tp,bucket,zero,status,throughput,peak_memory_gib\n"
    "small.toml,4,1,2,0,ok,2.5,0.5\nsmall.toml,2,2,16,2,oom,,\nsmall.toml,1,4,2,0,ok,1.25,0.25\n"
)
REPORT = (
    '{"step": 0, "seconds": 1.5}\n{"step": 1, "seconds": 1.25, "rank": 0}\n'
    '{"rank": 0, "peak_memory_gib": 4}\n'
)
OPTIONS = {
    "parabolt": {"risk": 3.0, "without": ["residual"]},
    "logeic": {"n_initial": 5, "repeats": "avoid", "kernel": "rbf"},
    "random": {"repeats": "avoid"},
}


def accepted(read, *given):
    """What a reader makes of its input; None for one error of one line that can be printed."""
    try:
        return read(*given)
    except (ParaboltError, ReportError) as error:
        refused = error
    message = str(refused)
    assert message.strip()
    assert "\n" not in message
    assert message.isprintable() or isinstance(refused, ReportError)
    return None


def same(one, other):
    """Whether two values are equal, where NaN is NaN."""
    return repr(one) == repr(other)


def holds_of_instance(document):
    found = accepted(lambda: instance_from_document(document, origin="x"))
    if found is not None:
        again = instance_from_document(instance_document(found), origin="y")
        assert again == found
        json.dumps(instance_document(found), allow_nan=False)
        assert all(
            type(v) is int and v >= 0 for _, levels in found.levels for v in map(int, levels)
        )


def holds_of_instance_text(text):
    found = accepted(lambda: parse_instance(text, origin="x"))
    if found is not None:
        assert instance_from_document(instance_document(found), origin="y") == found


def holds_of_spec(text):
    found = accepted(lambda: parse_spec(text, origin="x", folder=Path("/")))
    if found is not None:
        assert same(parse_spec(text, origin="x", folder=Path("/")), found)
        assert 0 < found.trial.time_limit_s < math.inf
        assert found.trial.timed_steps >= 1


def holds_of_study(document):
    found = accepted(study_of, document)
    if found is not None:
        assert same(study_of(found.as_json()).as_json(), found.as_json())


def holds_of_study_text(text):
    found = accepted(parse_study, text)
    if found is not None:
        assert same(study_of(found.as_json()).as_json(), found.as_json())


def holds_of_config(document):
    found = accepted(lambda: parse_config(json.dumps(document), origin="x"))
    if found is not None:
        assert 0 < found.n_parameters < 1e27


def holds_of_config_text(text):
    accepted(lambda: parse_config(text, origin="x"))


def holds_of_card(text):
    found = accepted(lambda: parse_card(text, origin="x"))
    if found is not None:
        assert parse_card(text, origin="x") == found
        assert min(found.n_rows, found.n_feasible, found.n_gpus, found.n_hosts) >= 0


def in_folder(name, content, read):
    """What a reader makes of a file's content."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(content)
        return accepted(read, path)


def holds_of_trials(content):
    def read(path):
        path.with_name("small.toml").write_text(SMALL_TEXT)
        return read_trials(path, SMALL)

    found = in_folder("t.csv", content, read)
    if found is None:
        return
    written = io.StringIO()
    rows = csv.writer(written)
    rows.writerow(["instance", *KNOBS, "status", "throughput", "peak_memory_gib"])
    for configuration, outcome in zip(found.configurations, found.outcomes, strict=True):
        knobs = [knob.scale.word(getattr(configuration, k)) for k, knob in KNOBS.items()]
        figures = [outcome.throughput, outcome.peak_memory_gib]
        figures = [repr(f) if math.isfinite(f) else "" for f in figures]
        rows.writerow(["small.toml", *knobs, outcome.status, *figures])
    again = in_folder("t.csv", written.getvalue().encode(), read)
    assert again.configurations == found.configurations
    assert [o.status for o in again.outcomes] == [o.status for o in found.outcomes]
    assert np.array_equal(again.outcomes.throughput, found.outcomes.throughput, equal_nan=True)
    ok = found.outcomes.throughput[~np.isnan(found.outcomes.throughput)]
    assert ((ok > 0) & np.isfinite(ok)).all()


def holds_of_journal(content):
    records = in_folder(JOURNAL, content, read_journal)
    history = None if records is None else accepted(TrialHistory.of, records)
    if history is not None:
        again = "".join(json.dumps(record) + "\n" for record in records).encode()
        assert in_folder(JOURNAL, again, read_journal) == records
        if history.about is not None:
            accepted(history.about.load_instance)
        assert 0 <= history.wall_time_s < math.inf
        assert 0 <= history.saved_s < math.inf
        for leader in history.leaders:
            assert 0 < leader.throughput < math.inf


def holds_of_run(content):
    def read(path):
        return RunStore(path.parent).load(path)

    run = in_folder("run.parquet", content, read)
    if run is not None:
        again = run_from_arrow(run_to_arrow(run))
        assert again.key == run.key
        assert again.outcomes == run.outcomes
        assert again.configurations == run.configurations


def holds_of_calibration(text):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "c.toml")
        path.write_bytes(text.encode(errors="surrogatepass"))
        found = accepted(load_calibration, path)
        if found is not None:
            save_calibration(found, path)
            again = load_calibration(path)
            assert np.array_equal(again.time.mean, found.time.mean)
            assert np.isfinite(found.time.mean).all()


def holds_of_report(content):
    found = Measurements()

    def read(path):
        ReportReader(path, found).read()
        return True

    if in_folder("report.jsonl", content, read):
        assert all(0 < s < math.inf for s in found.step_times_s.values())
        assert all(0 < g < math.inf for g in found.peak_memory_gib.values())


def holds_of_log(name_and_text):
    name, text = name_and_text
    found = Measurements()
    accepted(lambda: log_format(name).read(text.splitlines(keepends=True), 0, SMALL, found))
    assert all(0 < s < math.inf for s in found.step_times_s.values())
    assert all(0 < g < math.inf for g in found.peak_memory_gib.values())


def holds_of_options(name_and_options):
    name, options = name_and_options
    found = accepted(lambda: make_optimizer(name, SPACE, seed=0, **optimizer_options(options)))
    if found is not None:
        configuration = found.ask()
        assert SPACE.row(configuration) is not None


def holds_of_words(text):
    for read in (parse_cluster, load_model, load_instance, parabolt.load_table):
        found = accepted(read, text)
        if found is not None and read is parse_cluster:
            assert found.n_gpus % found.n_hosts == 0
            assert 0 < found.memory_gib < math.inf


def holds_of_progress(text):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "progress.json").write_bytes(text.encode(errors="surrogatepass"))
        found = read_progress(Path(folder))
        assert all(isinstance(leader, str) for leader in found.get("leaders", {}).values())


SMALL_TEXT = (Path(__file__).parents[1] / "trials" / "small.toml").read_text()
EXCERPTS = [
    (path.stem, sample["text"])
    for path in sorted(LOGS.glob("*.toml"))
    for sample in tomllib.loads(path.read_text(encoding="utf-8"))["sample"]
]
CONFIGS = [v["config"] for v in json.loads((DATA / "model_configs.json").read_text()).values()]
RUN = (DATA / "v0_1" / "run.parquet").read_bytes()
JOURNAL_TEXT = (DATA / "v0_1" / "tune" / "journal.jsonl").read_text()


def as_bytes(text):
    return texts(text).map(lambda found: found.encode(errors="surrogatepass"))


def journals():
    """Lines of which one is mutated as a document."""
    lines = [json.loads(line) for line in JOURNAL_TEXT.splitlines()]
    return documents(lines).map(
        lambda found: "".join(json.dumps(line) + "\n" for line in found).encode()
    )


BOUNDARIES = {
    "instance": (documents(instance_document(SMALL)), holds_of_instance),
    "instance of words": (
        documents(tomllib.loads(instance_text("pco32"))), holds_of_instance,
    ),
    "instance file": (texts(instance_text("pco32")), holds_of_instance_text),
    "spec file": (texts(SPEC), holds_of_spec),
    "study": (documents(STUDY), holds_of_study),
    "study file": (texts('problems = ["pco32"]\noptimizers = ["random"]\n'), holds_of_study_text),
    "config.json": (st.sampled_from(CONFIGS).flatmap(documents), holds_of_config),
    "config.json, text": (texts(json.dumps(CONFIGS[0])), holds_of_config_text),
    "card": (texts((DATA / "pco32_card.md").read_text()), holds_of_card),
    "trials": (as_bytes(TRIALS), holds_of_trials),
    "journal": (st.one_of(journals(), as_bytes(JOURNAL_TEXT)), holds_of_journal),
    "run": (contents(RUN), holds_of_run),
    "calibration": (texts((DATA / "calibration-0.1.toml").read_text()), holds_of_calibration),
    "report": (as_bytes(REPORT), holds_of_report),
    "log": (
        st.sampled_from(EXCERPTS).flatmap(
            lambda excerpt: texts(excerpt[1]).map(lambda text: (excerpt[0], text))
        ),
        holds_of_log,
    ),
    "options": (
        st.sampled_from(sorted(OPTIONS)).flatmap(
            lambda name: documents(OPTIONS[name]).map(lambda options: (name, options))
        ),
        holds_of_options,
    ),
    "words": (st.one_of(texts("16x4 h100-96gb inter_host_gb_per_s=25"), st.text()), holds_of_words),
    "progress": (
        texts('{"leaders": {"pco32": "random"}, "remaining_s": 3.5}'), holds_of_progress,
    ),
}  # fmt: skip


def try_many(name, n):
    inputs, holds = BOUNDARIES[name]

    @settings(max_examples=n, derandomize=True, database=None)
    @given(inputs)
    def hold(value):
        holds(value)

    hold()


@pytest.mark.parametrize("name", BOUNDARIES)
def test_a_few_hostile_inputs(name):
    try_many(name, 25)


@pytest.mark.slow
@pytest.mark.parametrize("name", BOUNDARIES)
def test_many_hostile_inputs(name):
    try_many(name, 1_000)
