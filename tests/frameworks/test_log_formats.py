"""Every built-in format on excerpts of logs: `logs/<name>.toml`."""

import contextlib
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from parabolt.errors import UnknownNameError
from parabolt.frameworks.measurements import Measurements, ReportError
from parabolt.frameworks.registry import ALIASES, FRAMEWORKS, log_format
from parabolt.instances.catalogue import load_instance

INSTANCE = load_instance("pco32")  # 32 GPUs, batch 512, sequences of 8192
SAMPLES = [
    pytest.param(path.stem, sample, id=f"{path.stem}: {sample['name']}")
    for path in sorted((Path(__file__).parent / "logs").glob("*.toml"))
    for sample in tomllib.loads(path.read_text(encoding="utf-8"))["sample"]
]


def read(name, text, rank=0):
    found = Measurements()
    log_format(name).read(text.splitlines(keepends=True), rank, INSTANCE, found)
    return found


def whole(table):
    return {int(key): value for key, value in table.items()}


@pytest.mark.parametrize(("name", "sample"), SAMPLES)
def test_a_log_is_read(name, sample):
    if "error" in sample:
        with pytest.raises(ReportError) as error:
            read(name, sample["text"])
        assert sample["error"] in str(error.value)
        return
    found = read(name, sample["text"])
    if "timed_error" in sample:
        with pytest.raises(ReportError, match=sample["timed_error"]):
            found.timed_steps_s(0)
        return
    assert found.step_times_s == pytest.approx(whole(sample["steps"]))
    assert found.peak_memory_gib == pytest.approx(whole(sample["memory_gib"]))
    if "timed" in sample:
        assert found.timed_steps_s(sample["warmup"]) == pytest.approx(sample["timed"])


#: What launchers and terminals may put before each line of any log.
PREFIXES = (
    "0: ", "[rank0]: ", "[default0]:", "node-3: ", "[1,0]<stdout>:", "(TrainWorker pid=4711) ",
    "2025-05-05T10:00:00.123456789Z stdout F ", "\x1b[32m0: \x1b[0m[rank0]:", "role/0 ",
)  # fmt: skip


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(("name", "sample"), SAMPLES)
def test_a_prefix_of_every_line_changes_nothing(name, sample, prefix):
    if "steps" not in sample:
        return
    lines = [prefix + line for line in sample["text"].splitlines(keepends=True)]
    found = read(name, "".join(lines))
    assert found.step_times_s == pytest.approx(whole(sample["steps"]))
    peak = max(sample["memory_gib"].values(), default=0.0)
    assert max(found.peak_memory_gib.values(), default=0.0) == pytest.approx(peak)


def test_every_framework_has_samples():
    assert {parameter.values[0] for parameter in SAMPLES} == {
        name for name, framework in FRAMEWORKS.items() if framework.log
    }
    assert all(name == framework.name for name, framework in FRAMEWORKS.items())


def test_names():
    for alias, name in ALIASES.items():
        assert log_format(alias) is log_format(name)
        assert alias not in FRAMEWORKS
    with pytest.raises(UnknownNameError, match="torchtitan"):
        log_format("torchtitn")


@pytest.mark.parametrize("name", [n for n, f in FRAMEWORKS.items() if f.log])
def test_a_log_without_steps_has_none(name):
    found = read(name, "nothing\n" * 10)
    assert found.step_times_s == {}
    assert found.timed_steps_s(2) == []


def test_what_a_step_holds_comes_from_the_instance():
    line = "step:  4  loss: 11.0  memory: 40.00GiB(50%)  tps: 1,024  tflops: 160  mfu: 16%"
    workload = replace(INSTANCE.workload, batch_size=32, sequence_length=1024)
    found = Measurements()
    log_format("torchtitan").read([line], 0, replace(INSTANCE, workload=workload), found)
    assert found.step_times_s == {4: 1.0}  # 32 x 1024 tokens at 32 x 1024 tokens/s


def test_the_file_says_whose_memory_it_is_where_the_line_does_not():
    line = "step:  4  loss: 11.0  memory: 40.00GiB(50%)  tps: 1,024  tflops: 160  mfu: 16%"
    assert read("torchtitan", line, rank=5).peak_memory_gib == {5: 40.0}


@pytest.mark.parametrize("name", [n for n, f in FRAMEWORKS.items() if f.log])
def test_a_hostile_line_does_not_hang(name):
    """Lines of 340 kB made of the words that formats look for."""
    words = [
        "step: 1 memory: 2 ", "iteration 1/2 ", "global_step=1 CurrSamplesPerSec ",
        "1/2 [0:0<0:0, ", "[batch=1/2] throughput/", "iter 1 step 1 ", "steps: 1 ", "10%| ",
        "train_step_timing in s: global_step: ", "elapsed time per iteration (ms): | ",
    ]  # fmt: skip
    for word in words:
        found = Measurements()
        with contextlib.suppress(ReportError):
            log_format(name).read([word * (340_000 // len(word))], 0, INSTANCE, found)
        assert found.step_times_s.keys() <= {1, 2}
