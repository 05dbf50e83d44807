import io

import pytest

from parabolt.frameworks.log_line import MAX_LENGTH, bounded_lines, log_lines, parse_line

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
STEP = " iteration        3/      10 | elapsed time per iteration (ms): 2500.5 |"


@pytest.mark.parametrize(
    ("prefix", "rank", "source"),
    [
        ("", None, ""),
        ("[rank3]: ", 3, "[rank3]:"),
        ("[rank3]:", 3, "[rank3]:"),
        ("[rank12] ", 12, "[rank12]"),
        ("3: ", 3, "3:"),
        ("  3: ", 3, "3:"),
        ("[default5]:", 5, "[default5]:"),
        ("[trainer1]:", 1, "[trainer1]:"),
        ("0: [rank3]: ", 3, "0: [rank3]:"),
        ("1: [default7]:[rank15]: ", 15, "1: [default7]: [rank15]:"),
        ("node07: ", None, "node07:"),
        ("10.20.0.7: ", None, "10.20.0.7:"),
        ("gpu-b-3.cluster.local: 2024-05-05 10:00:00,123 ", None, "gpu-b-3.cluster.local:"),
        ("alpha: [2024-05-05 10:00:00,123] ", None, "alpha:"),
        ("[1,6]<stdout>:", 6, "[1,6]<stdout>:"),
        ("[1,6]<stderr>: ", 6, "[1,6]<stderr>:"),
        ("[prterun-node01-4711@1,2]<stdout>: ", 2, "[prterun-node01-4711@1,2]<stdout>:"),
        ("[4] ", 4, "[4]"),
        ("[node01:9]: ", 9, "[node01:9]:"),
        ("(RayTrainWorker pid=4711, ip=10.0.0.2) ", None, "(RayTrainWorker pid=4711, ip=10.0.0.2)"),
        ("(train_fn pid=12) [rank1]: ", 1, "(train_fn pid=12) [rank1]:"),
        ("[pod/llm-worker-0/pytorch] ", None, "[pod/llm-worker-0/pytorch]"),
        ("llm-worker-0  | ", None, "llm-worker-0  |"),
        ("llama3_8b_perf/0 ", None, "llama3_8b_perf/0"),
        ("llama3_8b_perf/0 0: [rank4]:", 4, "llama3_8b_perf/0 0: [rank4]:"),
        ("[2024-05-05 10:00:00,123] ", None, ""),
        ("[2024-05-05 10:00:00.123456] ", None, ""),
        ("2024-05-05 10:00:00,123 - ", None, ""),
        ("2024-05-05 10:00:00.936 | ", None, ""),
        ("2024-05-05T10:00:00.123456789Z stdout F ", None, ""),
        ("2024-05-05T10:00:00+02:00 ", None, ""),
        ("05/05/2024 10:00:00 ", None, ""),
        ("[05/05/24 10:00:00] ", None, ""),
        ("10:00:00 - ", None, ""),
        ("[10:00:00] ", None, ""),
        ("May  5 10:00:00 ", None, ""),
        ("Sun May  5 10:00:00 2024[1,7]<stdout>:", 7, "[1,7]<stdout>:"),
        ("[12345.678901] ", None, ""),
        ("\x1b[32m0: \x1b[0m[2024-05-05 10:00:00] \x1b[1m[rank2]:\x1b[0m ", 2, "0: [rank2]:"),
        ("2024-05-05T10:00:00Z [1,0]<stderr>:[rank8]: ", 8, "[1,0]<stderr>: [rank8]:"),
    ],
)
@pytest.mark.parametrize("text", [OOM, STEP.strip()])
def test_prefixes_come_off_and_name_rank_and_source(prefix, rank, source, text):
    line = parse_line(prefix + text)
    assert line.text.lstrip() == text
    assert line.rank == rank
    assert line.source == source


@pytest.mark.parametrize(
    "text",
    [
        OOM,
        STEP,
        "RuntimeError: NCCL Error 2: unhandled system error",
        "ValueError: [1, 2] is not a size",
        "step:  3  loss: 11.0  memory: 40.00GiB(50%)  tps: 131,072",
        "step3: 0.5 s",
        "fp8: on",
        "epoch 1 | step 2 | 3.5 s",
        "0 | model | Linear | 10",
        "  0%|          | 0/10 [00:00<?, ?it/s]",
        '  File "train.py", line 12, in <module>',
        "[timer.py:260]: stop",
        "[E512 08:00:01.23 ProcessGroupNCCL.cpp:616] Watchdog caught collective operation timeout",
        "accuracy: 0.5",
        "Error: 3 of 4",
    ],
)
def test_what_a_program_wrote_stays(text):
    assert parse_line(text).text == text


def test_a_programs_own_rank_is_known_and_stays():
    memory = "[Rank 3] (after 1 iterations) memory (MB) | max reserved: 1000.0"
    assert parse_line(memory).rank == 3
    assert parse_line(memory).text == memory
    watchdog = "[E512 08:00:01.23 ProcessGroupNCCL.cpp:616] [Rank 5] Watchdog caught"
    assert parse_line(watchdog).rank == 5
    assert parse_line("[rank2]:" + watchdog).rank == 2


def test_a_level_in_the_brackets_of_the_time_stays():
    assert parse_line("[2024-05-05 10:00:00,123 ERROR] lost").text == "ERROR] lost"


def test_the_raw_line_keeps_its_prefixes_but_no_colour():
    assert parse_line("\x1b[31m0: [rank1]: x\x1b[0m").raw == "0: [rank1]: x"
    assert parse_line("\x1b]0;title\x07x\x1b[2K\x08").raw == "x"


def test_each_state_of_a_progress_bar_is_a_line():
    redraws = "\r 10%|# | 1/10 [00:01<00:09, 1.00s/it]\r 20%|## | 2/10 [00:02<00:08, 1.00s/it]\r\n"
    lines = list(log_lines([redraws, "", "  \n", "0: done\r\n0: end"]))
    assert [line.text[:5] for line in lines] == [" 10%|", " 20%|", "done", "end"]
    assert [line.rank for line in lines] == [None, None, 0, 0]


def test_an_overlong_line_keeps_both_ends():
    line = parse_line("begin " + "x" * 10**6 + " end")
    assert line.text.startswith("begin x")
    assert line.text.endswith("x end")
    assert len(line.raw) <= MAX_LENGTH + 10
    whole = "y" * (MAX_LENGTH - 1)
    assert parse_line(whole).text == whole


@pytest.mark.parametrize("n", [0, 1, MAX_LENGTH - 1, MAX_LENGTH, MAX_LENGTH + 1, 5 * MAX_LENGTH])
@pytest.mark.parametrize("end", ["", "\n"])
def test_a_file_is_read_in_bounded_lines(n, end):
    text = "head\n" + "a" * n + "b" + end + ("tail\n" if end else "")
    lines = list(bounded_lines(io.StringIO(text)))
    assert [lines[0], *lines[2:]] == (["head\n", "tail\n"] if end else ["head\n"])
    assert len(lines[1]) <= MAX_LENGTH + 10
    assert lines[1].rstrip("\n").endswith("b")
    if n < MAX_LENGTH - 1:
        assert lines[1] == "a" * n + "b" + end


@pytest.mark.parametrize(
    "hostile",
    ["[" * 340_000, "0: " * 120_000, "\x1b[" * 170_000, "\x1b]" * 170_000, "a-1 " * 85_000,
     "[2024-05-05 10:00:00] " * 16_000, "a." * 170_000, "1" * 340_000, " " * 340_000 + "x"],
)  # fmt: skip
def test_hostile_lines_are_bounded_and_end(hostile):
    """Quadratic work would not end within the suite's time limit of a test."""
    for line in log_lines([hostile] * 20):
        assert len(line.raw) <= MAX_LENGTH + 10
        assert line.raw.endswith(line.text)
