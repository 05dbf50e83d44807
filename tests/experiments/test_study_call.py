"""`parabolt.run_study`: any optimizer, any problem, in one call."""

import dataclasses
import json
import subprocess
import sys
import textwrap

import numpy as np
import pyarrow.parquet as pq
import pytest

import parabolt
from parabolt.experiments.runner import run_study
from parabolt.experiments.study import OptimizerChoice, Study

SHORT = {"n_evaluations": 4}


def first_untried(space, history, rng):
    """The first candidate that was not told yet."""
    tried = set(history.rows.tolist())
    return next(row for row in range(len(space)) if row not in tried)


def as_configuration(space, history, rng):
    return space.candidates[first_untried(space, history, rng)]


def as_mapping(space, history, rng):
    return as_configuration(space, history, rng).as_dict()


class AskTell:
    """Goes through the candidates from `start` on; no parabolt class at all."""

    def __init__(self, space, *, seed, start=0):
        self.space, self.told, self.next = space, [], start

    def ask(self):
        self.next += 1
        return self.space.candidates[self.next - 1]

    def tell(self, configuration, outcome):
        self.told.append((configuration, outcome))

    def recommend(self):
        return self.told[0][0]


class Drawn(parabolt.Optimizer):
    def __init__(self, space, *, low=0, **options):
        super().__init__(space, **options)
        self.low = low

    def _next_row(self, available):
        return int(available[available >= self.low][self.rng.integers(5)])


def rows(problem, run):
    return problem.space.rows(run.configurations)[run.n_initial :].tolist()


def runs_of(optimizers, seeds=1, problem="pco4-cpu", **protocol):
    return Study(
        problems=(problem,),
        optimizers=tuple(OptimizerChoice.of(found, label) for label, found in optimizers.items()),
        seeds=tuple(range(seeds)),
        protocol=tuple({**SHORT, **protocol}.items()),
    )


@pytest.fixture
def run_here(tmp_path, here):
    from parabolt.experiments.store import RunStore

    def run(optimizers, **options):
        study = runs_of(optimizers, **options)
        problems = [parabolt.load_problem(name) for name in study.problems]
        final = run_study(study, problems, tmp_path, executor=here)
        assert final.n_failed == 0, RunStore(tmp_path).load_failures()
        return problems[0], {
            (run.key.optimizer, run.key.seed): run for run in RunStore(tmp_path).load_all()
        }

    return run


def test_functions_propose_configurations_mappings_or_rows(run_here):
    found = {"row": first_untried, "configuration": as_configuration, "mapping": as_mapping}
    problem, runs = run_here(found, repeats="avoid")
    design = set(problem.space.rows(runs["row", 0].configurations)[:10].tolist())
    expected = [row for row in range(20) if row not in design][:4]
    for label in found:
        assert rows(problem, runs[label, 0]) == expected


def test_objects_and_classes_with_ask_and_tell(run_here):
    problem, runs = run_here(
        {
            "class": AskTell,
            "object": AskTell(parabolt.load_problem("pco4-cpu").space, seed=0, start=3),
            "options": OptimizerChoice("x:AskTell", "options", (("start", 7),), AskTell),
        },
        seeds=2,
    )
    for seed in (0, 1):  # each run has an object of its own
        assert rows(problem, runs["class", seed]) == [0, 1, 2, 3]
        assert rows(problem, runs["object", seed]) == [3, 4, 5, 6]
        assert rows(problem, runs["options", seed]) == [7, 8, 9, 10]
        run = runs["class", seed]
        first = problem.evaluate(run.configurations[0])
        expected = first.throughput if first.is_feasible else 0.0
        assert run.recommended[10:].tolist() == [expected] * 4


def test_an_instance_stands_for_its_class_and_options(run_here):
    space = parabolt.load_problem("pco4-cpu").space
    problem, runs = run_here({"a": Drawn(space, seed=77, low=40), "b": Drawn(space)}, seeds=2)
    assert runs["a", 0].key.options == (("low", 40),)
    assert min(rows(problem, runs["a", 0]) + rows(problem, runs["a", 1])) >= 40
    assert rows(problem, runs["a", 0]) != rows(problem, runs["a", 1])
    assert max(rows(problem, runs["b", 0])) < 5


def test_an_instance_that_was_told_something_is_refused():
    problem = parabolt.load_problem("pco4-cpu")
    used = Drawn(problem.space)
    used.tell(problem.space.candidates[0], problem.evaluate(problem.space.candidates[0]))
    with pytest.raises(parabolt.OptionError, match="asked and told nothing, got one with 1 obs"):
        parabolt.run_study("pco4-cpu", used)


def test_what_is_no_optimizer_is_refused():
    for wrong in (3, object(), int):
        with pytest.raises(
            parabolt.OptionError, match=r"expected a subclass of parabolt.Optimizer"
        ):
            parabolt.run_study("pco4-cpu", [wrong])
    with pytest.raises(parabolt.OptionError, match=r"protocol: expected fields among .*got budget"):
        parabolt.run_study("pco4-cpu", "random", protocol={"budget": 3})
    with pytest.raises(parabolt.ParaboltError, match="distinct labels, got random twice"):
        parabolt.run_study("pco4-cpu", ["random", "random"])


def test_one_call_runs_problems_by_name_path_and_object(tmp_path):
    table = parabolt.load_problem("pco4-cpu").table
    path = tmp_path / "mine.parquet"
    index = table.data.schema.get_field_index("throughput_mean")
    doubled = table.data["throughput_mean"].to_numpy() * 2.0
    pq.write_table(table.data.set_column(index, "throughput_mean", [doubled]), path)
    simulated = "simulated:pco16?seed=1"
    results = parabolt.run_study(
        ["pco4-cpu", path, simulated, parabolt.load_problem("simulated:pco16?seed=2")],
        {"mine": Drawn, "lambda": lambda space, history, rng: int(rng.integers(len(space)))},
        seeds=[4],
        protocol=SHORT,
        executor="local:1",
    )
    assert (results.n_total, results.n_done, results.n_failed) == (8, 8, 0)
    labels = [board.label for board in results.boards]
    assert labels[0].startswith("pco4-cpu [data ")
    assert labels[1].startswith("pco4-cpu [data ")
    assert labels[2:] == ["simulated:pco16?seed=1", "simulated:pco16?seed=2"]
    assert [group.label for group in results.boards[0].groups] == ["mine", "lambda"]
    one, two = (board.groups[0].runs[0] for board in results.boards[:2])
    assert np.allclose(two.outcomes.throughput, 2.0 * one.outcomes.throughput, equal_nan=True)
    assert one.key.seed == 4


SCRIPT = """
import json, sys
import parabolt

STEP = int(sys.argv[2])

class Mine(parabolt.Optimizer):
    def _next_row(self, available):
        return int(available[step() % len(available)])

def step():
    return STEP

results = parabolt.run_study("pco4-cpu", Mine, seeds=2, folder=sys.argv[1], executor="local:2",
                             protocol={"n_evaluations": 2})
run = results.boards[0].groups[0].runs[0]
print(json.dumps([results.n_done, run.key.method, run.key.code, run.key.digest]))
"""


def test_a_class_of_a_script_without_a_guard(tmp_path):
    script = tmp_path / "mine.py"
    script.write_text(textwrap.dedent(SCRIPT))

    def call(folder, step):
        command = [sys.executable, str(script), str(tmp_path / folder), step]
        return subprocess.run(command, capture_output=True, text=True)

    first = call("a", "3")
    assert first.returncode == 0, first.stderr
    n_done, method, code, digest = json.loads(first.stdout)
    assert (n_done, method, len(code)) == (2, "__main__:Mine", 64)
    assert json.loads(call("a", "3").stdout)[3] == digest  # nothing is run again
    script.write_text(textwrap.dedent(SCRIPT).replace("step() %", "1 + step() %"))
    edited = call("a", "3")
    assert edited.returncode != 0
    assert "holds results of another Mine on pco4-cpu (code: " in edited.stderr


def test_a_class_of_a_prompt_is_known_by_its_code(tmp_path):
    def code_of(source):
        command = [
            sys.executable, "-c",
            "from parabolt.experiments.code_hash import code_hash; import parabolt\n"
            f"{textwrap.dedent(source)}\nprint(code_hash(Mine))",
        ]  # fmt: skip
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    source = """
    import numpy as np
    TABLE, LEVELS = np.arange(3), {"b": (1, 2.0), "a": [None]}
    def helper(x): return [x + TABLE[0] for _ in LEVELS]
    class Base(parabolt.Optimizer):
        def _next_row(self, available): return helper(1)[0]
    class Mine(Base):
        limit = 4
    """
    first = code_of(source)
    assert code_of(source) == first
    assert code_of(source.replace("def helper", "# a remark\n    def helper")) == first
    for old, new in (
        ("arange(3)", "arange(4)"), ("2.0)", "2.5)"), ("x + TABLE", "x - TABLE"),
        ("helper(1)", "helper(2)"), ("limit = 4", "limit = 5"),
    ):  # fmt: skip
        assert code_of(source.replace(old, new)) != first, new


def test_a_run_is_known_by_content_and_label_alone():
    problem = parabolt.load_problem("pco4-cpu")
    from parabolt.experiments.run_key import RunKey

    key = RunKey.of(problem, "random", 3, parabolt.Protocol(5), options={"b": [1, 2], "a": "x"})
    assert key.options == (("a", "x"), ("b", [1, 2]))
    assert RunKey.from_json(json.loads(json.dumps(key.as_json()))) == key
    same = dataclasses.replace(key, data_version="of another name")
    assert same == key
    assert same.digest == key.digest
    limited = dataclasses.replace(key, protocol=parabolt.Protocol(5, run_time_limit_s=3.0))
    assert limited.digest == key.digest
    changes = (
        {"problem": "x"}, {"optimizer": "x"}, {"seed": 4}, {"content_hash": "x"}, {"method": "x"},
        {"options": ()}, {"code": "x"}, {"parabolt": "x"}, {"protocol": parabolt.Protocol(6)},
        {"protocol": parabolt.Protocol(5, feedback="status")},
        {"protocol": parabolt.Protocol(5, workers=2)},
    )  # fmt: skip
    others = [dataclasses.replace(key, **change) for change in changes]
    assert len({key.digest, *(other.digest for other in others)}) == len(changes) + 1
