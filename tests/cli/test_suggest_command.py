"""`parabolt suggest` says what it assumes, and where nothing is likely to fit."""

import json

import pytest

from command_line import parabolt

INSTANCE = """
name = "mine"
model = {n_layers = 32, n_heads = 32, hidden_size = 4096, ffn_size = 14336}
cluster = {n_gpus = 16, n_hosts = 2, memory_gib = 80}
workload = {sequence_length = 4096, batch_size = 256%s}
knobs = {dp = [4, 8, 16], tp = [1, 2, 4], bucket = [256], zero = [0, 3]}
"""


@pytest.fixture
def suggest(tmp_path):
    def run(stated, *words):
        (tmp_path / "mine.toml").write_text(INSTANCE % stated)
        done = parabolt("suggest", "mine.toml", *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_a_whole_batch_as_one_micro_batch_is_called_into_question(suggest):
    lines = suggest("").splitlines()
    assert "assumed: vocabulary not stated, 128000" in lines
    (doubt,) = (line for line in lines if line.startswith("no candidate is likely to fit"))
    assert "[workload] micro_batch_size = 1" in doubt


def test_with_small_micro_batches_there_is_no_doubt(suggest):
    assert "likely to fit" not in suggest(", micro_batch_size = 1")
    result = json.loads(suggest(", micro_batch_size = 1", "--json"))
    assert result["doubt"] == ""
    assert result["next"][0]["p_feasible"] > 0.5
    assert "vocabulary not stated, 128000" in result["assumptions"]
