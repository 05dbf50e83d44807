import pytest

from parabolt.errors import SpecError
from parabolt.frameworks.measurements import Measurements, ReportError
from parabolt.frameworks.patterns import patterns_format
from parabolt.instances.catalogue import load_instance

INSTANCE = load_instance("pco32")  # 32 GPUs, batch 512, sequences of 8192


def read(line, *patterns, rank=0):
    found = Measurements()
    patterns_format(patterns).read([line], rank, INSTANCE, found)
    return found


@pytest.mark.parametrize(
    ("line", "pattern", "seconds"),
    [
        ("it 7: 20.5ms", r"it (?P<step>\d+): (?P<milliseconds>[\d.]+)ms", 0.0205),
        ("it 7: 20.5", r"it (?P<step>\d+): (?P<milliseconds>[\d.]+)", 0.0205),
        ("it 7: 11.5K ms", r"it (?P<step>\d+): (?P<milliseconds>[\d.]+K?)", 11.5),
        ("it 7: 2.5 s", r"it (?P<step>\d+): (?P<seconds>[\d.]+)", 2.5),
        ("it 7: 2.5s/it", r"it (?P<step>\d+): (?P<seconds>[\d.]+)", 2.5),
        ("it 7: 2.5e-1,", r"it (?P<step>\d+): (?P<seconds>[\d.e+-]+)", 0.25),
        ("it 7: 4.0it/s", r"it (?P<step>\d+): (?P<iterations_per_s>[\d.]+)", 0.25),
        ("it 7: 4.0 it/s", r"it (?P<step>\d+): (?P<iterations_per_s>[\d.]+)", 0.25),
        ("it 7: 1,024 samples/s", r"it (?P<step>\d+): (?P<samples_per_s>[\d.,]+)", 0.5),
        ("it 7: 4.194304M tok/s", r"it (?P<step>\d+): (?P<tokens_per_s>\S+)", 1.0),
        ("it 7: 131,072 tok/s", r"it (?P<step>\d+): (?P<tokens_per_gpu_s>\S+)", 1.0),
        ("7,0.5,61", r"^(?P<step>\d+),(?P<seconds>[\d.]+)", 0.5),
    ],
)
def test_step_times_in_every_unit(line, pattern, seconds):
    assert read(line, pattern).step_times_s == pytest.approx({7: seconds})


@pytest.mark.parametrize(
    ("line", "pattern", "gib"),
    [
        ("mem=3.25", r"mem=(?P<memory_gb>\S+)", 3.25e9 / 2**30),
        ("mem=3.25GB", r"mem=(?P<memory_gb>[\d.]+)", 3.25e9 / 2**30),
        ("mem=3.25GiB", r"mem=(?P<memory_gib>[\d.]+)", 3.25),
        ("mem=3.25 GB", r"mem=(?P<memory_gib>[\d.]+)", 3.25),
        ("mem=512MiB", r"mem=(?P<memory_mib>[\d.]+)", 0.5),
        ("mem=512MiB", r"mem=(?P<memory>\w+)", 0.5),
        ("mem=2147483648 B", r"mem=(?P<memory>\d+ B)", 2.0),
        ("mem=547MB", r"mem=(?P<memory>\w+)", 547e6 / 2**30),
    ],
)
def test_memory_in_every_unit(line, pattern, gib):
    assert read(line, pattern, rank=2).peak_memory_gib == pytest.approx({2: gib})


def test_the_line_may_name_the_rank():
    found = read("rank 3 mem=3.25", r"rank (?P<rank>\d+) mem=(?P<memory_gib>\S+)", rank=2)
    assert found.peak_memory_gib == {3: 3.25}
    assert read("[rank4]: mem=3.25", r"mem=(?P<memory_gib>\S+)").peak_memory_gib == {4: 3.25}


def test_an_expression_sees_the_prefixes_but_no_colours():
    line = "\x1b[31m0: it 7 \x1b[0m2.0\r0: it 8 3.0"
    found = read(line, r"^0: it (?P<step>\d+) (?P<seconds>\S+)")
    assert found.step_times_s == {7: 2.0, 8: 3.0}


@pytest.mark.parametrize(
    ("line", "pattern", "message"),
    [
        ("1: 11.5K ms", r"(?P<step>\d+): (?P<milliseconds>[\d.]+)", "takes '11.5' of '11.5K'"),
        ("1: 547M", r"(?P<step>\d+): (?P<seconds>\d+)", "takes '547' of '547M'"),
        ("mem: 547M", r"mem: (?P<memory_gb>\d+)", "takes '547' of '547M'; try to take in all"),
        ("mem: 547M", r"mem: (?P<memory_gb>\w+)", "unknown unit in '547M': expected one of none"),
        ("mem: 547M", r"mem: (?P<memory>\w+)", "unknown unit in '547M': expected one of B, KB"),
        ("1: 12.5", r"(?P<step>\d+): (?P<seconds>\d+)", "takes '12' of '12.5'"),
        ("1: 12,500 ms", r"(?P<step>\d+): (?P<milliseconds>\d+)", "takes '12' of '12,500'"),
        ("1: 1.25e+03", r"(?P<step>\d+): (?P<seconds>[\d.]+)", "takes '1.25' of '1.25e"),
        ("1: 12.5Q", r"(?P<step>\d+): (?P<seconds>\S+)", "unknown unit in '12.5Q'"),
        ("1: fast", r"(?P<step>\d+): (?P<seconds>\S+)", "expected a number in the log, got 'fast'"),
        ("1.5: 2", r"(?P<step>[\d.]+): (?P<seconds>\S+)", "expected a whole number in the log"),
        ("1: 0", r"(?P<step>\d+): (?P<iterations_per_s>\S+)", "expected a positive rate"),
        ("1: -2", r"(?P<step>\d+): (?P<seconds>\S+)", "expected positive seconds, got -2"),
    ],
)
def test_what_is_not_understood_is_refused(line, pattern, message):
    with pytest.raises(ReportError) as error:
        read(line, pattern)
    assert message in str(error.value)


@pytest.mark.parametrize("figure", ["lots", "nan", "0", "-1", "N/A"])
def test_a_bad_memory_figure_voids_no_times(figure):
    found = read(
        f"7: 2.0 mem={figure}", r"(?P<step>\d+): (?P<seconds>\S+)", r"mem=(?P<memory_gib>\S+)"
    )
    assert found.step_times_s == {7: 2.0}
    assert found.peak_memory_gib == {}


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(", "pattern '('"),
        ("a{99999999999}", "the repetition number is too large"),
        ("(" * 5_000 + ")" * 5_000, "pattern '((((("),
        ("[[a]b]", "Possible nested set"),
        ("step", "expected the named group step with one of seconds, milliseconds, iterations_per"),
        (r"(?P<step>\d)", "got step"),
        (r"(?P<seconds>\d)", "got seconds"),
        (r"(?P<step>\d)(?P<seconds>\d)(?P<milliseconds>\d)", "one of seconds"),
        (r"(?P<memory_gib>\d)(?P<color>\d)", "got color, memory_gib"),
    ],
)
def test_an_expression_without_the_groups_is_refused(pattern, message):
    with pytest.raises(SpecError) as error:
        patterns_format((pattern,))
    assert message in str(error.value)


def test_whether_a_format_finds_memory():
    assert not patterns_format((r"(?P<step>\d+): (?P<seconds>\S+)",)).has_memory
    assert patterns_format((r"(?P<memory>\d+ B)",)).has_memory


def test_an_expression_that_never_ends_is_told():
    """2^40 ways to split 40 letters: the search is ended by a timer of the processor."""
    with pytest.raises(ReportError, match="takes more than 1 s on one line; try one without rep"):
        read(f"1 time {'a' * 40}b", r"(?P<step>\d) time (?P<seconds>(a+)+)$")
    assert read("1 time 2.5", r"(?P<step>\d) time (?P<seconds>[\d.]+)").step_times_s == {1: 2.5}
