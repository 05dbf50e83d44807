import json
import time

import torch
from lightning.pytorch import LightningModule, Trainer

from parabolt.integrations.lightning import ReportCallback


class Line(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).square().mean()

    def validation_step(self, batch, batch_idx):
        self.log("loss", self.layer(batch).square().mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


def train(tmp_path, **options):
    """Trains a line; the seconds that the whole took."""
    data = torch.utils.data.DataLoader(torch.ones(32, 4), batch_size=2)
    trainer = Trainer(
        accelerator="cpu",
        devices=1,
        default_root_dir=tmp_path,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[ReportCallback()],
        **options,
    )
    start = time.perf_counter()
    trainer.fit(Line(), data, data)
    return time.perf_counter() - start


def test_each_optimizer_step_is_reported_once(tmp_path, monkeypatch):
    report = tmp_path / "report.jsonl"
    monkeypatch.setenv("PARABOLT_REPORT", str(report))
    whole_s = train(tmp_path, max_steps=6, accumulate_grad_batches=2, val_check_interval=4)
    records = [json.loads(line) for line in report.read_text().splitlines()]
    assert [record["step"] for record in records] == [1, 2, 3, 4, 5, 6]
    assert 0.0 < sum(record["seconds"] for record in records) < whole_s


def test_outside_a_trial_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.delenv("PARABOLT_REPORT", raising=False)
    train(tmp_path, max_steps=1, enable_checkpointing=False)
    assert not list(tmp_path.glob("*.jsonl"))
