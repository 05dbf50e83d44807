import json
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

from parabolt.frameworks.measurements import Measurements
from parabolt.integrations.transformers import ReportTrainerCallback
from parabolt.trials.measurements import ReportReader, Statistics

CONFIG = LlamaConfig(
    vocab_size=32,
    hidden_size=16,
    intermediate_size=32,
    num_hidden_layers=1,
    num_attention_heads=2,
    max_position_embeddings=16,
)


def train(tmp_path, **options):
    """Trains a tiny Llama; the seconds that the whole took."""
    arguments = TrainingArguments(
        output_dir=str(tmp_path / "out"),
        per_device_train_batch_size=2,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        **options,
    )
    tokens = torch.arange(16) % 32
    data = [{"input_ids": tokens, "labels": tokens} for _ in range(32)]
    trainer = Trainer(
        LlamaForCausalLM(CONFIG),
        arguments,
        train_dataset=data,
        eval_dataset=data[:4],
        callbacks=[ReportTrainerCallback()],
    )
    start = time.perf_counter()
    trainer.train()
    return time.perf_counter() - start


def test_each_optimizer_step_is_reported_once(tmp_path, monkeypatch):
    report = tmp_path / "report.jsonl"
    monkeypatch.setenv("PARABOLT_REPORT", str(report))
    whole_s = train(
        tmp_path,
        max_steps=6,
        gradient_accumulation_steps=2,
        eval_strategy="steps",
        eval_steps=2,
        save_steps=3,
    )
    records = [json.loads(line) for line in report.read_text().splitlines()]
    assert [record["step"] for record in records] == [1, 2, 3, 4, 5, 6]
    assert 0.0 < sum(record["seconds"] for record in records) < whole_s
    found = Measurements()
    ReportReader(report, found).read()
    assert len(Statistics.of(found, n_warmup=2, n_timed=4).step_times_s) == 4


def test_outside_a_trial_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.delenv("PARABOLT_REPORT", raising=False)
    train(tmp_path, max_steps=1, save_strategy="no")
    assert not list(tmp_path.glob("*.jsonl"))
