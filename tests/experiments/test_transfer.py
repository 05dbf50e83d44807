"""History from other instances: which tables each split gives, and that runs are told by it."""

import json

import pytest

import parabolt
from parabolt.errors import OptionError, UnknownNameError
from parabolt.experiments.protocol import HISTORY_POOL, Protocol
from parabolt.experiments.run import execute
from parabolt.experiments.run_key import RunKey
from parabolt.experiments.study import parse_study
from parabolt.experiments.transfer import past_trials
from parabolt.instances.catalogue import instance_text, load_instance
from parabolt.problems.suites import SUITES, problems_of
from parabolt.tables.sources import EMBEDDED, USCALE

SPLITS = ("leave-one-instance-out", "leave-one-model-out", "small-to-large")
BUDGET = {"n_initial": 0, "min_feasible": 0, "n_evaluations": 3}


def names(asked, split, **options):
    protocol = Protocol(3, history=split, **options)
    return [e.instance.name for e in past_trials(load_instance(asked), protocol).evidence]


def of_models(*models):
    return [name for name in USCALE if name.split("-")[1] in models]


def test_the_pool_is_every_table_of_gpus():
    assert set(problems_of(HISTORY_POOL)) == set(EMBEDDED) - {"pco4-cpu"}


def test_splits_by_hand():
    others = {"pco32", "pco64", *USCALE} - {"uscale-8b-512"}
    assert set(names("uscale-8b-512", SPLITS[0])) == others
    assert set(names("uscale-8b-512", SPLITS[1])) == {"pco32", "pco64", *of_models("1b", "80b")}
    assert names("uscale-8b-512", SPLITS[2]) == ["uscale-8b-8", "uscale-8b-16", "uscale-8b-32"]
    assert names("uscale-80b-64", SPLITS[2]) == ["uscale-80b-32", "uscale-80b-8", "uscale-80b-16"]
    assert set(names("pco32", SPLITS[0])) == {"pco64", *USCALE}
    assert set(names("pco32", SPLITS[1])) == {"pco64", *USCALE}
    assert names("uscale-1b-8", SPLITS[0], history_from=("pco64", "uscale-1b-8")) == ["pco64"]
    assert past_trials(load_instance("pco32"), Protocol(3)).evidence == ()


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("asked", SUITES["all"])
def test_the_asked_instance_is_never_told(asked, split):
    own = load_instance(asked)
    try:
        evidence = past_trials(own, Protocol(3, history=split)).evidence
    except OptionError:
        n_hosts = own.cluster.n_hosts
        assert split == "small-to-large"
        assert asked.startswith("pco") or n_hosts <= 4
        return
    for item in evidence:
        other = item.instance
        assert other.name != asked
        assert (other.model, other.cluster, other.workload) != (
            own.model, own.cluster, own.workload,
        )  # fmt: skip


def copied(name, folder, new_name):
    """A published table as a directory of its own, under another name."""
    folder.mkdir()
    parabolt.load_table(name).to_parquet(folder / "data.parquet")
    text = instance_text(name).replace(f'name = "{name}"', f'name = "{new_name}"')
    (folder / "instance.toml").write_text(text)
    return str(folder)


def test_the_asked_table_under_another_name_is_not_told_either(tmp_path):
    path = copied("uscale-8b-8", tmp_path / "copy", "another")
    assert names("uscale-8b-16", SPLITS[0], history_from=(path,)) == ["another"]
    with pytest.raises(OptionError, match="gives for uscale-8b-8, got none in"):
        names("uscale-8b-8", SPLITS[0], history_from=(path,))


class Noting(parabolt.Optimizer):
    """Takes the first row, and notes what it was given."""

    given = ()

    def __init__(self, space, **options):
        super().__init__(space, **options)
        Noting.given = tuple(item.instance.name for item in self.past)

    def _next_row(self, available):
        return int(available[0])


def test_a_run_is_told_what_its_split_gives():
    problem = parabolt.load_problem("uscale-8b-64")
    protocol = Protocol(**BUDGET, history="small-to-large")
    key = RunKey.of(problem, "noting", 0, protocol, code="")
    execute(problem, key, Noting)
    assert Noting.given == ("uscale-8b-8", "uscale-8b-16", "uscale-8b-32")
    own = RunKey.of(problem, "noting", 0, protocol, code="", options={"history": ["pco32"]})
    execute(problem, own, Noting)
    assert Noting.given == ("pco32",)
    cold = RunKey.of(problem, "noting", 0, protocol, code="", options={"history": []})
    execute(problem, cold, Noting)
    assert Noting.given == ()


def test_the_split_and_its_tables_are_part_of_a_runs_identity(tmp_path):
    problem = parabolt.load_problem("uscale-8b-64")
    path = copied("uscale-8b-8", tmp_path / "copy", "another")
    keys = [
        RunKey.of(problem, "random", 0, Protocol(**BUDGET, **options))
        for options in (
            {},
            *({"history": split} for split in SPLITS),
            {"history": SPLITS[0], "history_from": ["uscale-8b-8"]},
            {"history": SPLITS[0], "history_from": [path]},
        )
    ]
    assert len({key.digest for key in keys}) == len(keys)
    assert "history_hash" not in keys[0].identity()
    assert not {"history", "history_from"} & set(keys[0].protocol.identity())
    for key in keys:
        again = RunKey.from_json(json.loads(json.dumps(key.as_json())))
        assert (again, again.digest) == (key, key.digest)
    # Other outcomes in a file of the same name are another history.
    copied("uscale-8b-16", tmp_path / "other", "another")
    (tmp_path / "copy" / "data.parquet").unlink()
    (tmp_path / "other" / "data.parquet").rename(tmp_path / "copy" / "data.parquet")
    (tmp_path / "other" / "instance.toml").rename(tmp_path / "copy" / "instance.toml")
    changed = RunKey.of(problem, "random", 0, keys[-1].protocol)
    assert changed.protocol == keys[-1].protocol
    assert changed.digest != keys[-1].digest


def test_a_suite_stands_for_its_problems():
    parsed = parse_study('problems = ["pco32", "uscale", "uscale-1b-8"]\noptimizers = ["random"]')
    assert parsed.problems == ("pco32", *SUITES["uscale"])
    results = parabolt.run_study("uscale", "random", seeds=1, protocol=BUDGET)
    assert [run.key.problem for run in results.counted()] == list(SUITES["uscale"])


def test_a_study_with_history(tmp_path):
    study = """
        problems = ["uscale-8b-64", "uscale-1b-128"]
        optimizers = ["best-of-history", "random"]
        seeds = 2
        executor = "local:1"
        [protocol]
        n_initial = 0
        min_feasible = 0
        n_evaluations = 2
        history = "small-to-large"
    """
    parsed = parse_study(study)
    problems = [parabolt.load_problem(name) for name in parsed.problems]
    results = parabolt.run_study(
        problems, ["best-of-history", "random"], seeds=2, protocol=dict(parsed.protocol),
        folder=tmp_path / "runs",
    )  # fmt: skip
    assert len(results.counted()) == 8
    # The order is that of history alone, so that both seeds try the same.
    first = {
        (run.key.problem, tuple(map(str, run.configurations)))
        for run in results.counted()
        if run.key.optimizer == "best-of-history"
    }
    assert len(first) == 2
    assert "history: small-to-large" in str(results.counted()[0].key.protocol)
    with pytest.raises(OptionError, match="tables that small-to-large gives for uscale-8b-8, got"):
        parabolt.run_study("uscale-8b-8", "random", protocol=dict(parsed.protocol))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"history": "leave-two-out"}, "history: expected one of none, leave-one-instance-out"),
        ({"history_from": []}, "history_from: expected a list of tables and suites, got"),
        ({"history_from": "all"}, "history_from: expected a list of tables and suites, got 'all'"),
        ({"history_from": [3]}, "history_from: expected a list of tables and suites"),
    ],
)
def test_a_split_that_cannot_be(options, complaint):
    with pytest.raises(OptionError, match=complaint):
        Protocol(3, **options)


def test_a_pool_of_an_unknown_name():
    with pytest.raises(UnknownNameError, match="nowhere"):
        names("pco32", SPLITS[0], history_from=("nowhere",))
