"""Past trials from tables, journals, sweeps and CSV files, in one place."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from parabolt.errors import JournalError, OptionError, TableError, UnknownNameError
from parabolt.instances.catalogue import instance_document, load_instance
from parabolt.instances.search_space import SearchSpace
from parabolt.journal import records
from parabolt.journal.about import About
from parabolt.journal.file import JOURNAL, Journal
from parabolt.outcome import Outcome, Source, Status
from parabolt.planner.past_trials import optimizer_options, read_history, read_own_trials
from parabolt.tables.sources import load_table
from parabolt.trials.spec.file import parse_spec
from parabolt.trials.sweep import sweep

SMALL = Path(__file__).parents[1] / "trials/small.toml"
SCRIPT = Path(__file__).parents[1] / "trials/scripted.py"


def ok(throughput, peak_memory_gib, capacity_gib):
    return Outcome(
        Status.OK,
        throughput,
        peak_memory_gib,
        peak_memory_gib / capacity_gib - 1.0,
        30.0,
        Source.MEASURED,
        Source.MEASURED,
    )


def write_journal(folder, instance, outcomes, *, document=True):
    """A journal with one trial for each outcome, in lattice order; the last one is under way."""
    about = About(
        "tune",
        instance.name,
        n_gpus=instance.cluster.n_gpus,
        memory_gib=instance.cluster.memory_gib,
        document=instance_document(instance) if document else None,
    )
    candidates = SearchSpace.lattice(instance).candidates
    with Journal(folder / JOURNAL) as journal:
        journal.append(records.created({}, about))
        for number, outcome in enumerate(outcomes):
            journal.append(records.asked(number, candidates[number]))
            journal.append(records.launched(number, f"trials/{number}"))
            journal.append(
                records.ended(
                    number, outcome, reason="", saved_s=0.0, statistics=None, is_final=True
                )
            )
        journal.append(records.asked(len(outcomes), candidates[len(outcomes)]))
    return candidates[: len(outcomes)]


OUTCOMES = [ok(2.5, 0.5, 1), Outcome.oom(), Outcome(Status.NODE), ok(1.25, 0.75, 1)]


@pytest.mark.parametrize("name", ["", JOURNAL])
def test_a_journal_says_itself_of_which_instance_it_is(tmp_path, name):
    instance = load_instance(str(SMALL))
    configurations = write_journal(tmp_path, instance, OUTCOMES)
    found = read_history(str(tmp_path / name))
    assert found.instance == instance
    assert list(found.configurations) == configurations
    assert list(found.outcomes) == OUTCOMES
    own = read_own_trials(str(tmp_path / name), instance)
    assert list(own.configurations) == configurations
    assert list(own.outcomes) == OUTCOMES


def test_paths_start_where_the_spec_is(tmp_path):
    write_journal(tmp_path / "runs", load_instance(str(SMALL)), OUTCOMES)
    assert len(read_history("runs", folder=tmp_path).outcomes) == 4
    with pytest.raises(UnknownNameError):
        read_history("runs")


def test_a_journal_of_version_0_1_has_its_instances_name_only(tmp_path):
    pco16, small = load_instance("pco16"), load_instance(str(SMALL))
    write_journal(tmp_path / "a", pco16, OUTCOMES, document=False)
    assert read_history(str(tmp_path / "a")).instance == pco16
    write_journal(tmp_path / "b", small, OUTCOMES, document=False)
    with pytest.raises(JournalError, match=r"holds its instance.*'small' only; try the sweep.csv"):
        read_history(str(tmp_path / "b"))


def test_trials_of_another_setting_are_refused_with_what_differs(tmp_path):
    small = load_instance(str(SMALL))
    write_journal(tmp_path, small, OUTCOMES)
    text = SMALL.read_text().replace("sequence_length = 64", "sequence_length = 128")
    (tmp_path / "long.toml").write_text(text.replace('"small"', '"long"'))
    with pytest.raises(
        TableError,
        match=r"expected trials of long, got some of small, which differs in "
        r"workload.sequence_length \(64, not 128\); try them as history",
    ):
        read_own_trials(str(tmp_path), load_instance(str(tmp_path / "long.toml")))


def test_another_candidate_set_of_the_same_setting_is_welcome(tmp_path):
    """The knobs that an instance searches are no part of what was run."""
    configurations = write_journal(tmp_path, load_instance(str(SMALL)), OUTCOMES)
    text = SMALL.read_text().replace("bucket = [2, 16]", "bucket = [1, 2, 4, 8, 16]")
    (tmp_path / "more.toml").write_text(text)
    more = load_instance(str(tmp_path / "more.toml"))
    own = read_own_trials(str(tmp_path), more)
    assert own.instance == more
    assert list(own.configurations) == configurations


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """The folder of a real sweep."""
    folder = tmp_path_factory.mktemp("sweep")
    text = (
        f"instance = '{SMALL}'\ncommand = ['python3', '-S', '{SCRIPT}', '{{configuration}}']\n"
        "[trial]\nwarmup_steps = 1\ntimed_steps = 3\n"
    )
    sweep(parse_spec(text, origin="x", folder=folder), folder)
    return folder


def test_a_sweep_is_read_by_its_export_and_by_its_journal(swept):
    small = load_instance(str(SMALL))
    by_journal = read_history(str(swept))
    by_export = read_history(str(swept / "sweep.csv"))
    own = read_own_trials(str(swept / "sweep.csv"), small)
    assert by_journal.instance == by_export.instance == small
    for found in (by_export, own):
        assert np.array_equal(found.outcomes.throughput, by_journal.outcomes.throughput)
        assert np.array_equal(found.outcomes.peak_memory_gib, by_journal.outcomes.peak_memory_gib)
    assert list(own.configurations) == list(by_journal.configurations)


def test_an_export_alone_is_of_the_instance_that_one_names(swept, tmp_path):
    shutil.copy(swept / "sweep.csv", tmp_path)
    own = read_own_trials(str(tmp_path / "sweep.csv"), load_instance(str(SMALL)))
    assert len(own.outcomes) == len(read_history(str(swept)).outcomes)
    with pytest.raises(TableError, match="got a CSV file without a journal beside it"):
        read_history(str(tmp_path / "sweep.csv"))


def test_a_csv_file_of_trials(tmp_path):
    (tmp_path / "t.csv").write_text(
        f"instance,dp,tp,bucket,status,throughput\n{SMALL},4,1,2,ok,2.5\n{SMALL},2,2,2,oom,\n"
    )
    own = read_own_trials(str(tmp_path / "t.csv"), load_instance(str(SMALL)))
    assert [str(o.status) for o in own.outcomes] == ["ok", "oom"]
    with pytest.raises(TableError, match="cannot read"):
        read_own_trials(str(tmp_path / "absent.csv"), load_instance(str(SMALL)))


def test_tables_by_name():
    table = load_table("pco32")
    found = read_history("pco32")
    assert found.instance == table.instance
    assert np.array_equal(found.configurations, table.space.encoded)
    assert np.array_equal(found.outcomes.throughput, table.outcomes.throughput, equal_nan=True)
    with pytest.raises(UnknownNameError):
        read_history("pco33")


def test_options_of_an_optimizer():
    options = optimizer_options({"history": ["pco64"], "without": ["residual"]})
    assert options["without"] == ["residual"]
    assert [e.instance.name for e in options["history"]] == ["pco64"]
    assert optimizer_options({"n_initial": 3}) == {"n_initial": 3}
    for name in ("name", "space", "seed", "rng"):
        with pytest.raises(OptionError, match=f"{name}: expected options of the optimizer"):
            optimizer_options({name: 1})
    for history in ("pco64", [1], 3):
        with pytest.raises(OptionError, match="history: expected a list of tables or journals"):
            optimizer_options({"history": history})
