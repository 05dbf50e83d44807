"""What a spec can run, by frameworks that express less than the lattice has."""

from dataclasses import replace

import pytest

from parabolt.errors import SpecError
from parabolt.outcome import Status
from parabolt.trials.candidates import candidates_of
from parabolt.trials.spec.file import parse_spec
from parabolt.trials.spec.spec import Budget
from parabolt.trials.sweep import sweep
from parabolt.trials.tune import tune

INSTANCE = """
name = "eight"
model = {n_layers = 32, n_heads = 32, hidden_size = 4096, ffn_size = 14336}
cluster = {n_gpus = 8, n_hosts = 1, memory_gib = 80}
workload = {sequence_length = 8192, batch_size = 8, micro_batch_size = 1}
[knobs]
"""
#: Writes its command line, and reports.
CODE = r"""
import json, os, sys
with open("launches.jsonl", "a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\n")
with open(os.environ["PARABOLT_REPORT"], "a") as file:
    for step in range(4):
        file.write(json.dumps({"step": step, "seconds": 0.5}) + "\n")
    file.write(json.dumps({"rank": 0, "peak_memory_gib": 30}) + "\n")
"""


@pytest.fixture
def spec_of(tmp_path):
    def make(knobs, framework, command='["python3", "-S", "job.py", "{flags}"]'):
        (tmp_path / "eight.toml").write_text(INSTANCE + knobs)
        (tmp_path / "job.py").write_text(CODE)
        text = (
            f"instance = 'eight.toml'\ncommand = {command}\nframework = '{framework}'\n"
            "[trial]\nwarmup_steps = 1\ntimed_steps = 3\n"
        )
        return parse_spec(text, origin="x", folder=tmp_path)

    return make


ZERO = "dp = [2, 4, 8]\ntp = [1, 2, 4]\nsp = [1, 2, 4]\nbucket = [256]\nzero = [0, 3]\n"


def test_what_a_framework_cannot_express_is_left_out_with_its_number(spec_of):
    """DeepSpeed's AutoTP has no sequence parallelism, and no tensor parallelism with ZeRO-3.

    Of dp8, dp4 tp2 (sp 1 and 2) and dp2 tp4 (sp 1, 2 and 4), each with zero 0 and 3, it runs dp8
    twice, and dp4 tp2 and dp2 tp4 with sp 1 and zero 0: 6 have sp > 1, and 2 of the others zero 3.
    """
    found = candidates_of(spec_of(ZERO, "deepspeed"))
    assert [(c.dp, c.tp, c.sp, c.zero) for c in found.space.candidates] == [
        (2, 4, 1, 0), (4, 2, 1, 0), (8, 1, 1, 0), (8, 1, 1, 3),
    ]  # fmt: skip
    assert found.twins == ()
    assert sorted(line[:35] for line in found.left_out) == [
        "2 configurations can't be expressed", "6 configurations can't be expressed",
    ]  # fmt: skip
    assert any("AutoTP" in line for line in found.left_out)


def test_a_version_of_a_framework(spec_of):
    """Of dp8, dp4 tp2 and dp2 tp4 Megatron-LM runs those with sp 1 or the whole of tp."""
    found = candidates_of(spec_of(ZERO, "megatron-lm@0.16"))
    assert {(c.dp, c.tp, c.sp) for c in found.space.candidates} == {
        (8, 1, 1), (4, 2, 1), (4, 2, 2), (2, 4, 1), (2, 4, 4),
    }  # fmt: skip
    with pytest.raises(SpecError, match=r"unknown version of Megatron-LM '0\.2'"):
        spec_of(ZERO, "megatron-lm@0.2")


def test_what_the_rules_of_an_instance_remove_is_said_too(spec_of):
    found = candidates_of(spec_of(ZERO + "pp = [1, 2]\n", "megatron-lm"))
    # dp4 pp2, and dp2 tp2 pp2 with sp 1 and 2: each has ZeRO-3, which BoLT's rules refuse.
    assert found.left_out[0] == (
        "ZeRO stage 3 goes only without pipeline stages, and pp is 2: 3 configurations"
    )


def test_nothing_to_run(spec_of):
    with pytest.raises(SpecError, match=r"nothing to run: \d+ configurations can't be expressed"):
        candidates_of(spec_of("dp = [2]\ntp = [4]\nsp = [4]\nbucket = [64, 256]\n", "deepspeed"))


SAME = "dp = [1, 8]\ntp = [1, 8]\nbucket = [64, 256]\n"


def test_the_same_command_is_measured_once(spec_of, tmp_path):
    """With dp 1 there are no gradients to add up, so that Megatron-LM has no bucket."""
    spec = spec_of(SAME, "megatron-lm")
    messages = []
    history = sweep(spec, tmp_path / "out", observer=lambda s: messages.append(s.message))
    measured = [(t.configuration.dp, t.configuration.bucket) for t in history.told]
    assert measured == [(1, 64), (8, 64), (8, 256)]
    assert {t.outcome.status for t in history.told} == {Status.OK}
    launches = (tmp_path / "launches.jsonl").read_text().splitlines()
    assert len(set(launches)) == len(launches) == 3
    ((twin, other),) = candidates_of(spec).twins
    assert (twin.dp, twin.bucket, other) == (1, 256, history.told[0].configuration)
    assert any(m.startswith("not measured: 1 configuration would be the same") for m in messages)
    assert f"such as {twin}, which is {other}: it is measured once" in messages
    assert len((tmp_path / "out/sweep.csv").read_text().splitlines()) == 1 + 3


def test_a_search_says_what_it_leaves_out_and_ends_when_all_is_tried(spec_of, tmp_path):
    spec = replace(spec_of(SAME, "megatron-lm"), budget=Budget(trials=9))
    messages = []
    history = tune(spec, tmp_path / "out", observer=lambda s: messages.append(s.message))
    assert len(history.told) == 3
    assert any(m.startswith("not searched: 1 configuration would be the same") for m in messages)
    assert "all candidates have been tried" in messages
