import tomllib
from pathlib import Path

import pytest

from parabolt.frameworks.log_follower import LogFollower
from parabolt.frameworks.measurements import Measurements, ReportError
from parabolt.frameworks.registry import log_format
from parabolt.instances.catalogue import load_instance

INSTANCE = load_instance("pco32")
LINE = " iteration {:8d}/      10 | elapsed time per iteration (ms): {:.1f} |\n"
SAMPLES = [
    pytest.param(path.stem, sample["text"], id=f"{path.stem}: {sample['name']}")
    for path in sorted((Path(__file__).parent / "logs").glob("*.toml"))
    for sample in tomllib.loads(path.read_text(encoding="utf-8"))["sample"]
    if "steps" in sample
]


def follow(path, name="megatron-lm"):
    return LogFollower(path, log_format(name), 0, INSTANCE)


@pytest.mark.parametrize("cut", [1, 7, 100])
@pytest.mark.parametrize(("name", "text"), SAMPLES)
def test_a_growing_file_says_the_same_as_the_whole_one(tmp_path, name, text, cut):
    path, whole = tmp_path / "log", Measurements()
    log_format(name).read(text.splitlines(keepends=True), 0, INSTANCE, whole)
    data, follower = text.encode(), follow(path, name)
    path.write_bytes(b"")
    with path.open("ab", buffering=0) as file:
        for i in range(0, len(data), max(1, len(data) // cut)):
            file.write(data[i : i + max(1, len(data) // cut)])
            follower.read()
            follower.measurements()  # asking changes nothing
    follower.end()
    assert follower.measurements() == whole


def test_a_line_without_its_end_is_left_for_later(tmp_path):
    path = tmp_path / "log"
    path.write_text(LINE.format(1, 500.0) + LINE.format(2, 250.0)[:-6])
    follower = follow(path)
    follower.read()
    assert follower.measurements().step_times_s == {1: 0.5}
    with path.open("a") as file:
        file.write(LINE.format(2, 250.0)[-6:])
    follower.read()
    assert follower.measurements().step_times_s == {1: 0.5, 2: 0.25}


def test_a_file_that_became_shorter_is_read_anew(tmp_path):
    path = tmp_path / "log"
    path.write_text("".join(LINE.format(step, 500.0) for step in range(1, 5)))
    follower = follow(path)
    follower.read()
    path.write_text(LINE.format(1, 125.0))
    follower.end()
    assert follower.measurements().step_times_s == {1: 0.125}


def test_a_line_that_never_ends_is_kept_in_part(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"x" * 3_000_000)
    follower = follow(path)
    follower.read()
    with path.open("ab") as file:
        file.write(b"y" * 3_000_000 + b"\n" + LINE.format(1, 500.0).encode())
    follower.end()
    assert follower.measurements().step_times_s == {1: 0.5}


def test_a_restart_is_noticed_over_several_reads(tmp_path):
    path, follower = tmp_path / "log", None
    path.write_text("".join(LINE.format(step, 500.0) for step in range(1, 5)))
    follower = follow(path)
    follower.read()
    with path.open("a") as file:
        file.write(LINE.format(1, 501.0))
    with pytest.raises(ReportError, match="step 1 stands in the log again"):
        follower.read()
