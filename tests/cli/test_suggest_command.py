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


def test_the_end_of_a_space(tmp_path, suggest):
    """All candidates were tried: the best is named, and nothing more is proposed."""
    cells = ["16,1,0", "16,1,3", "8,2,0", "8,2,3", "4,4,0", "4,4,3"]
    rows = "".join(f"mine.toml,{cell},256,ok,{1 + n}\n" for n, cell in enumerate(cells))
    (tmp_path / "t.csv").write_text(f"instance,dp,tp,zero,bucket,status,throughput\n{rows}")
    text = suggest(", micro_batch_size = 1", "--trials", "t.csv")
    assert "stop: all candidates have been tried" in text
    assert "best so far: dp4 tp4" in text
    result = json.loads(suggest(", micro_batch_size = 1", "--trials", "t.csv", "--json"))
    assert (result["should_stop"], result["next"]) == (True, [])
