"""The benchmark that counts which public runs can be expressed, on rows made up here."""

import csv
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import expressible_runs

LLAMA = {
    "source": "NVIDIA/Megatron-LM examples", "model": "llama3-405b", "n_layers": "126",
    "hidden": "16384", "ffn": "53248", "heads": "128", "kv_heads": "8", "vocab": "128256",
    "gated": "1", "n_gpus": "1024", "gpu": "h100-80gb", "gpus_per_host": "8", "dp": "8", "tp": "8",
    "pp": "8", "cp": "2", "ep": "", "sp": "1", "zero": "0", "chunks": "8", "micro_batch": "1",
    "global_batch": "512", "seq": "8192", "recompute": "none", "precision": "fp8",
    "note": "[net=50] [grad=2] figures",
}  # fmt: skip
#: 126 layers and both embeddings split over 8 x 8; so 15 layers in the first and the last stage.
SUPER = {
    **LLAMA, "source": "NVIDIA-NeMo/Megatron-Bridge docs", "model": "nemotron_3_super",
    "n_layers": "", "n_gpus": "64", "gpu": "gb200", "gpus_per_host": "4", "dp": "32", "tp": "2",
    "pp": "1", "cp": "1", "ep": "64", "chunks": "1", "precision": "fp4", "note": "[moe]",
}  # fmt: skip
LORA = {**SUPER, "model": "qwen3_30b_a3b", "ep": "8", "note": "[moe] [lora]", "recompute": ""}
UNEVEN = {
    **LLAMA, "source": "pytorch/torchtitan benchmarks", "dp": "8", "cp": "1", "n_gpus": "512",
    "zero": "3", "chunks": "1", "precision": "bf16", "recompute": "selective",
    "global_batch": "256",
}  # fmt: skip
UNKNOWN = {**LLAMA, "vocab": ""}
REFUSED = {**LLAMA, "precision": "fp4"}


def test_words_of_a_run():
    words = expressible_runs._words(LLAMA)
    assert words["--framework"] == "megatron-lm"
    assert words["--fix"] == (
        "dp=8 tp=8 pp=8 cp=2 ep=1 chunks=8 sp=8 zero=1 bucket=25 first_layers=15 last_layers=15"
    )
    assert words["--cluster"] == "128x8 h100-80gb inter_host_gb_per_s=50"
    assert words["--workload"] == "gradient_bytes=2"
    assert expressible_runs._words(SUPER)["--model"] == "nemotron3-super"


def test_shares_and_reasons(tmp_path, capsys):
    path = tmp_path / "runs.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, LLAMA)
        writer.writeheader()
        writer.writerows([LLAMA, SUPER, LORA, UNEVEN, UNKNOWN, REFUSED])
    expressible_runs.main(path)
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == "expressed: 4 of 6 runs, 66.7%"
    assert "  not 1: vocab is not stated" in rest
    assert any("h100-80gb has no units for nvfp4" in line for line in rest)
    assert "stated to plan: 4 of 6 runs, 66.7%" in rest
