"""`parabolt plan` as a user meets it."""

import json

import pytest

from command_line import parabolt

ASK = ("plan", "--model", "qwen3-32b", "--cluster", "16x4 h100-96gb", "--seq", "8192")


def test_a_plan_for_people():
    done = parabolt(*ASK, "--batch", "512", "--explain")
    assert done.returncode == 0, done.stderr
    for text in (
        "specifications only",
        "assumed: network not stated",
        "bound by",
        "peak memory",
        "Megatron-LM core",
        "--pipeline-model-parallel-size",
        "cannot express",
        "NeMo",
    ):
        assert text in done.stdout


def test_a_plan_for_scripts_with_a_config_file(tmp_path):
    config = tmp_path / "config.json"
    shape = {
        "model_type": "qwen3",
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "num_attention_heads": 32,
        "num_hidden_layers": 36,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 151936,
    }
    config.write_text(json.dumps(shape), encoding="utf-8")
    ask = ("plan", "--cluster", "2x8 h100-80gb", "--seq", "4096", "--batch", "64", "--json")
    by_file = parabolt(*ask, "--model", str(config), "--top", "3")
    by_name = parabolt(*ask, "--model", "qwen3-8b", "--top", "3")
    assert by_file.returncode == 0, by_file.stderr
    assert json.loads(by_file.stdout) == json.loads(by_name.stdout)
    entries = json.loads(by_file.stdout)["entries"]
    assert len(entries) == 3
    assert entries[0]["source"] == "predicted"
    assert {launch["framework"] for launch in entries[0]["launches"]} == {
        "Megatron-LM",
        "torchtitan",
        "DeepSpeed",
        "NeMo",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--batch", "0"), "batch_size: expected a positive whole number, got 0"),
        (("--batch", "512", "--recompute", "some"), "recomputation: expected one of none, layer"),
        (("--batch", "512", "--trials", "none.csv"), "cannot read none.csv"),
        (("--batch", "512", "--model", "qwen4"), "unknown model 'qwen4'"),
        (("--batch", "512", "--cluster", "64"), "cluster: expected HOSTSxGPUS and a GPU, got '64'"),
    ],
)
def test_misuse_is_one_line(arguments, message):
    done = parabolt(*ASK, *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr


def test_nothing_fits():
    done = parabolt(
        "plan",
        "--model",
        "gpt3-175b",
        "--cluster",
        "1x8 a100-40gb",
        "--seq",
        "2048",
        "--batch",
        "8",
    )
    assert done.returncode == 1
    assert "no configuration fits" in done.stdout
