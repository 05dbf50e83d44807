"""How well the cost model describes measurements: the tables, across tables, and vTrain's files.

Usage: python benchmarks/costmodel_accuracy.py [--vtrain DIR] [--table CSV INSTANCE]... [--draws N]

DIR holds `ground_truth_single.csv` and `ground_truth_multi.csv` of the public repository
VIA-Research/vTrain, `data/`. A further measured table is compared with the embedded ones by
`--table my.csv my.toml`.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import rankdata, spearmanr

from parabolt.costmodel.calibration.calibration import Calibration
from parabolt.costmodel.calibration.evidence import Evidence, StackedTrials
from parabolt.costmodel.predictor import CostModel
from parabolt.costmodel.terms.term import log_sum
from parabolt.instances.catalogue import load_instance
from parabolt.instances.model_shape import ModelShape
from parabolt.instances.specs import Cluster, Instance, Workload
from parabolt.outcome import Outcome, Outcomes
from parabolt.space.configuration import Configuration
from parabolt.tables.sources import EMBEDDED, load_table
from parabolt.tables.table import Table

if TYPE_CHECKING:
    from parabolt.outcome import BoolArray, FloatArray, IntArray


def main() -> None:
    """Prints all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vtrain", type=Path)
    parser.add_argument("--table", nargs=2, action="append", default=[])
    parser.add_argument("--draws", type=int, default=100)
    options = parser.parse_args()
    tables = {name: load_table(name) for name in EMBEDDED}
    for path, instance in options.table:
        table = Table.from_csv(path, load_instance(instance))
        tables[table.instance.name] = table
    for name, table in tables.items():
        print(f"{name}, specifications only: {scores(table, Calibration.prior())}")
    for name, table in tables.items():
        print(f"{name}, calibrated on all its rows: {scores(table, all_rows(table))}")
        print(f"{name}, P(OOM) of held-out configurations: AUC {held_out_auc(table):.4f}")
    for name, table in tables.items():
        for other, target in tables.items():
            if other != name:
                calibration = all_rows(table).transferred()
                print(f"{name} -> {other}: {scores(target, calibration)}")
    for name, table in tables.items():
        few_trials(name, table, options.draws)
    if options.vtrain:
        for file in ("single", "multi"):
            vtrain(options.vtrain / f"ground_truth_{file}.csv", file, options.draws)


def all_rows(table: Table) -> Calibration:
    """The calibration on a whole table."""
    return Calibration.prior().fit(evidence(table, np.arange(len(table))))


def evidence(table: Table, rows: IntArray) -> Evidence:
    """Rows of a table as trials."""
    return Evidence(table.instance, table.space.encoded[rows], table.outcomes.take(rows))


def scores(table: Table, calibration: Calibration) -> str:
    """Accuracy on all rows of a table, in words."""
    values = measures(table, calibration)
    rank = optimum_ranks(table, calibration)
    return (
        f"throughput MAPE {values[1]:.2f} %, Spearman {values[0]:.3f}, 90 % interval covers "
        f"{values[2]:.0%}; memory MAPE {values[3]:.2f} %; P(OOM) AUC {values[4]:.4f}; optimum at "
        f"rank {rank[0]} of rows, {rank[1]} of configurations apart from an inert bucket"
    )


def measures(table: Table, calibration: Calibration) -> tuple[float, float, float, float, float]:
    """Spearman, MAPE %, coverage of 90 % intervals, memory MAPE %, AUC of P(OOM)."""
    ok, truth = table.is_feasible, table.outcomes
    found = CostModel(table.instance, calibration).predict(table.space.encoded)
    error = found.throughput[ok] / truth.throughput[ok] - 1.0
    low, high = found.throughput_interval(0.9)
    covered = (low[ok] <= truth.throughput[ok]) & (truth.throughput[ok] <= high[ok])
    memory = found.peak_memory_gib[ok] / truth.peak_memory_gib[ok] - 1.0
    return (
        float(spearmanr(found.throughput[ok], truth.throughput[ok])[0]),
        100 * float(np.abs(error).mean()),
        float(covered.mean()),
        100 * float(np.abs(memory).mean()),
        auc(found.p_oom, ~ok),
    )


def optimum_ranks(table: Table, calibration: Calibration) -> tuple[int, int]:
    """Place of the table's optimum in the predicted order of feasible rows.

    The second figure counts rows that differ only in a bucket that does nothing as one.
    """
    ok = np.flatnonzero(table.is_feasible)
    found = CostModel(table.instance, calibration).predict(table.space.encoded).throughput[ok]
    best = int(np.argmax(table.outcomes.throughput[ok]))
    ahead = found > found[best]
    return 1 + int(ahead.sum()), 1 + len(np.unique(found[ahead].round(12)))


def held_out_auc(table: Table, n_folds: int = 5) -> float:
    """AUC of P(OOM) where no row that differs only in its bucket was calibrated on."""
    names = [knob.name for knob in table.instance.encoding.knobs]
    rest = np.delete(table.space.encoded, names.index("bucket"), axis=1)
    groups = np.unique(rest, axis=0, return_inverse=True)[1].ravel()
    fold = np.random.default_rng(0).integers(n_folds, size=groups.max() + 1)[groups]
    risk = np.empty(len(table))
    for k in range(n_folds):
        calibration = Calibration.prior().fit(evidence(table, np.flatnonzero(fold != k)))
        held = fold == k
        model = CostModel(table.instance, calibration)
        risk[held] = model.predict(table.space.encoded[held]).p_oom
    return auc(risk, ~table.is_feasible)


def few_trials(name: str, table: Table, draws: int) -> None:
    """Median accuracy over random trials."""
    rng = np.random.default_rng(0)
    for n_trials in (3, 10, 20, 50):
        found = [
            measures(table, Calibration.prior().fit(evidence(table, rows)))
            for rows in (rng.choice(len(table), n_trials, replace=False) for _ in range(draws))
        ]
        spearman, mape, _, memory, area = np.median(found, axis=0)
        low, high = np.quantile([f[0] for f in found], [0.1, 0.9])
        print(
            f"{name}, {n_trials} random trials, median of {draws} draws: Spearman {spearman:.3f} "
            f"(80 % of draws {low:.3f} to {high:.3f}), MAPE {mape:.2f} %, 90 % interval covers "
            f"{np.mean([f[2] for f in found]):.0%} (mean), memory MAPE {memory:.2f} %, "
            f"AUC {area:.3f}"
        )


def auc(risk: FloatArray, failed: BoolArray) -> float:
    """Area under the ROC curve: the chance that a failed row has the higher risk."""
    n_failed = int(failed.sum())
    above = rankdata(risk)[failed].sum() - n_failed * (n_failed + 1) / 2
    return float(above / (n_failed * (len(failed) - n_failed)))


def vtrain(path: Path, file: str, draws: int) -> None:
    """Median error on the rows of a vTrain file that were not calibrated on, 10 % were."""
    items = [vtrain_evidence(row) for row in csv.DictReader(path.open(encoding="utf-8-sig"))]
    trials = StackedTrials.of(items)
    features, truth = trials.time, np.log(trials.step_time_s)
    start = Calibration.prior()
    plain = log_sum(features, start.time.mean)[0]
    print(
        f"vTrain {file}, specifications only: MAPE "
        f"{100 * np.abs(np.expm1(plain - truth)).mean():.1f} %, "
        f"Spearman {spearmanr(plain, truth)[0]:.3f}"
    )
    rng, errors, covered = np.random.default_rng(0), [], []
    for _ in range(draws):
        used, rest = np.split(rng.permutation(len(items)), [round(0.1 * len(items))])
        time = start.fit(trials.take(used)).time
        predicted, jacobian = log_sum(features[rest], time.mean)
        error, std = predicted - truth[rest], np.sqrt(time.variance(jacobian) + time.scatter**2)
        errors.append(100 * float(np.abs(np.expm1(error)).mean()))
        covered.append(float((np.abs(error) < 1.645 * std).mean()))
    print(
        f"vTrain {file}, calibrated on {round(0.1 * len(items))} of {len(items)} rows, "
        f"{draws} draws: MAPE median {np.median(errors):.2f} %, mean {np.mean(errors):.2f} %, "
        f"worst {max(errors):.2f} %; 90 % interval covers {np.mean(covered):.0%}"
    )


def vtrain_evidence(row: dict[str, str]) -> Evidence:
    """A row as a trial: GPT with plain MLP, Megatron-DeepSpeed on hosts of eight A100.

    Assumed, as the files don't say: 80 GB GPUs, 100 Gb/s of network per GPU, unfused attention,
    optimizer states not sharded, gradients reduced in fp16, nothing recomputed.
    """
    n = {key: int(float(value)) for key, value in row.items() if key != "Parameters (billion)"}
    hidden, n_gpus = n["hidden size"], n["# GPUs"]
    sizes = {
        "dp": n["data parallelism"],
        "tp": n["tensor parallelism"],
        "pp": n["pipeline parallelism"],
    }
    levels = {k: (size,) for k, size in {**sizes, "bucket": 64}.items()}
    instance = Instance(
        name="vtrain",
        model=ModelShape(
            n["# layers"], n["attention heads"], hidden, 4 * hidden, vocabulary=51200,
            is_gated=False, is_tied=True,
        ),
        cluster=Cluster(
            n_gpus, max(1, n_gpus // 8), 80, gpu="a100-80gb", inter_host_gb_per_s=12.5
        ),
        workload=Workload(
            n["sequence length"], n["global batch"], micro_batch_size=n["micro batch"],
            is_attention_fused=False,
            is_optimizer_sharded=False, gradient_bytes=2,
        ),
        levels=tuple(levels.items()),
    )  # fmt: skip
    seconds = float(row["iteration time (ms)"]) / 1e3
    outcome = replace(Outcome.ok(1.0 / seconds), wall_time_s=seconds)
    return Evidence(instance, [Configuration(**sizes, bucket=64)], Outcomes.of([outcome]))


if __name__ == "__main__":
    main()
