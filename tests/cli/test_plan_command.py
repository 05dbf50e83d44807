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
        (
            ("--batch", "512", "--recompute", "some"),
            "recompute: expected one of none, selective, layer, chunk, got",
        ),
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


def test_a_count_says_what_each_rule_removed():
    ask = ("plan", "--model", "llama3-405b", "--cluster", "4x8 h100", "--seq", "4096")
    ask += ("--batch-tokens", str(32 * 4096), "--fix", "tp=1 sp=1 cp=1 bucket=256", "--count")
    done = parabolt(*ask, "--fix", "zero=1 chunks=1")
    assert done.returncode == 0, done.stderr
    # dp x pp = 32: 126 layers split over 1 and 2 stages, and not over 4, 8, 16 and 32.
    first, *removed = done.stdout.splitlines()
    assert first == "2 configurations of 32 GPUs meet the rules of bolt"
    assert removed == [
        "left out: 126 layers do not split over 4 stages: 1 configuration (4 for such reasons)"
    ]
    done = parabolt(*ask, "--fix", "zero=2", "--search", "chunks=1", "--framework", "torchtitan",
                    "--json")  # fmt: skip
    found = json.loads(done.stdout)
    assert found["n_candidates"] == 5  # 1, 2, 4, 8, 16 stages; at 32 there are no replicas
    assert found["removed"][0]["rule"] == "zero_with_replicas"


def test_a_plan_of_a_file(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(
        'name = "own"\nmodel = "llama3-8b"\ncluster = "3x8 h100"\n[workload]\n'
        "sequence_length = 4096\nbatch_size = 96\nmicro_batch_size = 1\n[knobs]\n"
        "dp = [3, 6, 12, 24]\ntp = [1, 2, 4, 8]\nbucket = [64]\n",
        encoding="utf-8",
    )
    done = parabolt("plan", "--instance", str(path), "--fix", "tp=4", "--json")
    assert done.returncode == 0, done.stderr
    (entry,) = json.loads(done.stdout)["entries"]
    assert (entry["configuration"]["dp"], entry["configuration"]["tp"]) == (6, 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*ASK, "--batch", "512", "--fix", "tp=2", "--search", "tp"), "tp: expected it to be stat"),
        ((*ASK, "--batch", "512", "--batch-tokens", "8192"), "got both or none"),
        ((*ASK, "--batch-tokens", "8191"), "expected whole sequences of 8192 tokens, got 8191"),
        ((*ASK, "--batch", "512", "--instance", "pco32"), "expected --instance, or --model"),
        (("plan", "--model", "qwen3-8b"), "expected --cluster, or an --instance that states it"),
        ((*ASK, "--batch", "512", "--framework", "jax"), "unknown dialect 'jax'"),
        ((*ASK, "--batch", "512", "--workload", "packed=1"), "unknown figure of a workload"),
        ((*ASK, "--batch", "512", "--workload", "is_frozen=true"), "is_frozen: the cost model"),
        ((*ASK, "--batch", "512", "--fix", "offload=optimizer"), "offload=optimizer: expected a k"),
        ((*ASK, "--batch", "512", "--fix", "tp=3"), "got none: "),
    ],
)
def test_what_cannot_be_planned_is_one_line(arguments, message):
    done = parabolt(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr
