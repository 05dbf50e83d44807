"""Files with one fault each: every one is reported at its row and column, and none is accepted."""

import csv
import io
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parabolt.errors import ParaboltError, TableError
from parabolt.instances.catalogue import load_instance
from parabolt.tables.checks.verification import verify
from parabolt.tables.reading.reader import open_table
from parabolt.tables.sources import load_table, locate
from parabolt.tables.table import Table

KNOBS = (
    "log2_dp_size, log2_tp_size, log2_pp_size, log2_cp_size, log2_sp_size, log2_dp_bucket_size_mb, "
    "zero_stage, log2_num_model_chunks"
)
GPUS = "log2_dp_size, log2_tp_size, log2_pp_size, log2_cp_size"

#: Rows of pco32: 374 is the best (dp 32, zero 2, bucket 256), 0 has pp 4 and cp 4, FAILED failed.
BEST = 374

#: Row, column, what stands there instead, rule, column of the finding (if another), words expected.
FAULTS = [
    (0, "log2_dp_size", "1.5", "type", None, "a whole number"),
    (0, "log2_dp_size", "two", "type", None, "a number"),
    (0, "log2_dp_size", "", "type", None, "a number"),
    (0, "log2_dp_size", "nan", "type", None, "a whole number"),
    (0, "log2_dp_size", "inf", "type", None, "a whole number"),
    (0, "log2_dp_size", "0x1", "type", None, "a number"),
    (0, "log2_dp_size", "1e300", "type", None, "a whole number"),
    (0, "log2_dp_size", "-1", "allowed_dp", None, "1, 2, 3, 4 or 5"),
    (0, "log2_dp_size", "0", "allowed_dp", None, "1, 2, 3, 4 or 5"),
    (0, "log2_dp_size", "99", "allowed_dp", None, "1, 2, 3, 4 or 5"),
    (0, "log2_dp_bucket_size_mb", "256", "allowed_bucket", None, "6, 7, 8 or 9"),
    (0, "zero_stage", "1", "allowed_zero", None, "0, 2 or 3"),
    (0, "zero_stage", "4", "allowed_zero", None, "0, 2 or 3"),
    (0, "zero_stage", "2", "zero_without_pipeline", "log2_pp_size, zero_stage", "valid"),
    (BEST, "log2_dp_size", "4", "gpu_count", GPUS, "valid"),
    (BEST, "log2_sp_size", "1", "sequence_parallel", "log2_tp_size, log2_sp_size", "valid"),
    (BEST, "log2_num_model_chunks", "1", "chunks_with_pipeline",
     "log2_pp_size, log2_num_model_chunks", "valid"),
    (0, "log2_num_model_chunks", "1", "interleaving_cap",
     "log2_pp_size, log2_num_model_chunks", "valid"),
    (BEST, "log2_dp_bucket_size_mb", "6", "distinct", KNOBS, "of its own"),
    (5, "num_layers", "41", "context", None, "40"),
    (5, "num_layers", "", "type", None, "a number"),
    (7, "batch_size", "256", "context", None, "512"),
    (7, "log2_num_gpus", "6", "context", None, "5"),
    (7, "log2_grad_accum_steps", "1", "context", None, "0"),
    (0, "ran_successfully", "maybe", "type", None, "True or False"),
    (0, "ran_successfully", "", "type", None, "True or False"),
    (0, "ran_successfully", "2", "type", None, "True or False"),
    (0, "throughput_mean", "", "measured", None, "a positive number"),
    (0, "throughput_mean", "fast", "type", None, "a number"),
    (0, "throughput_mean", "-0.2", "measured", None, "a positive number"),
    (0, "throughput_mean", "0", "measured", None, "a positive number"),
    (0, "throughput_mean", "inf", "measured", None, "a positive number"),
    ("failed", "throughput_mean", "0.3", "unmeasured", None, "NaN where the run failed"),
    (0, "throughput_mean", "212.484455", "steps", None, "0.212484 iterations/s"),
    (0, "throughput_std", "-0.001", "measured", None, "0 or more"),
    (0, "throughput_std", "", "measured", None, "0 or more"),
    (0, "throughput_std", "0.1", "steps", None, "iterations/s, as its steps give"),
    ("failed", "throughput_std", "0.1", "unmeasured", None, "NaN where the run failed"),
    (0, "overall_time", "-5", "measured", None, "a positive number"),
    (0, "overall_time", "", "measured", None, "a positive number"),
    (0, "overall_time", "0.02", "wall_clock", None, "of its steps, or more"),
    ("failed", "overall_time", "10", "unmeasured", None, "NaN where the run failed"),
    (0, "all_time_steps", "", "list", None, "a list of step times"),
    (0, "all_time_steps", "4.7 4.7", "list", None, "a list of step times"),
    (0, "all_time_steps", "[4.7; 4.7]", "list", None, "a list of step times"),
    (0, "all_time_steps", "[4.7, -4.7]", "steps", None, "positive"),
    (0, "all_time_steps", "[4706.2, 4706.3, 4706.2]", "steps", "throughput_mean", "milliseconds"),
    (0, "peak_mem", "-41.41496", "measured", None, "a positive number"),
    (0, "peak_mem", "", "measured", None, "a positive number"),
    (0, "peak_mem", "nan", "measured", None, "a positive number"),
    (0, "peak_mem", "inf", "measured", None, "a positive number"),
    (0, "peak_mem", "141.4", "fits", None, "less than the 96 GB"),
    ("failed", "peak_mem", "95.9", "unmeasured", None, "inf where the run ran out of memory"),
    ("failed", "peak_mem", "nan", "unmeasured", None, "inf where the run ran out of memory"),
    (0, "peak_mem_normalised", "-0.5", "margin", None, "-0.56859"),
    (0, "peak_mem_normalised", "", "margin", None, "-0.56859"),
    (0, "peak_mem_normalised", "nan", "margin", None, "-0.56859"),
    ("failed", "peak_mem_normalised", "0.1", "margin", None, "0.2 where the run ran out"),
    ("failed", "peak_mem_normalised", "-0.1", "margin", None, "0.2 where the run ran out"),
    (0, "peak_mem_per_gpu", "[40.1, 41.2]", "largest", None, "41.41496 (peak_mem)"),
    (0, "peak_mem_per_gpu", "41.41496", "list", None, "a list of peak memories"),
    (0, "peak_mem_per_gpu", "", "list", None, "a list of peak memories"),
    ("failed", "peak_mem_per_gpu", "[50.0, 95.0]", "largest", None, "inf (peak_mem)"),
]  # fmt: skip
INSTANCE = load_instance("pco32")


@pytest.fixture
def export(original, tmp_path):
    """A sound export as rows of texts, header first, and what writes and verifies a changed one."""
    path = tmp_path / "sweep.csv"
    table = original("pco32")
    table.to_csv(path)
    rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))

    def check(changed):
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(changed)
        return path, verify(open_table(path), INSTANCE).findings

    failed = int(table.is_feasible.argmin())
    assert list(check(rows)[1]) == []
    return rows, failed, check


@pytest.mark.parametrize(("row", "column", "value", "rule", "where", "expected"), FAULTS)
def test_a_fault_is_reported_where_it_is(export, row, column, value, rule, where, expected):
    rows, failed, check = export
    row = failed if row == "failed" else row
    rows[row + 1][rows[0].index(column)] = value
    path, findings = check(rows)
    at = {(f.row, f.column) for f in findings if f.rule == rule}
    assert (row, column if where is None else where) in at or rule == "distinct"
    assert any(expected in f.expected for f in findings if f.rule == rule)
    assert {f.row for f in findings} <= {row} or rule == "distinct"
    if rule == "distinct":
        assert {f.row for f in findings} == {BEST}
    in_schema = rule not in ("steps", "list", "largest", "wall_clock") and column not in (
        "throughput_std", "overall_time",
    )  # fmt: skip
    if in_schema:  # what reading checks, too
        with pytest.raises(TableError, match=rf"row {row}\b"):
            load_table(path)


def test_there_are_enough_faults():
    assert len(FAULTS) >= 40
    assert len({(row, column, value) for row, column, value, *_ in FAULTS}) == len(FAULTS)


@pytest.mark.parametrize(
    "column",
    ["log2_dp_size", "zero_stage", "num_layers", "ran_successfully", "throughput_mean", "peak_mem"],
)
def test_a_missing_column_is_named_and_the_rest_still_checked(export, column):
    rows, _, check = export
    rows[1][rows[0].index("log2_num_hosts")] = "4"
    at = rows[0].index(column)
    path, findings = check([[c for i, c in enumerate(row) if i != at] for row in rows])
    assert ("columns", column) in findings.counts()
    assert [f.row for f in findings if f.column == "log2_num_hosts"] == [0]
    with pytest.raises(TableError, match=f"column {column}: expected the column, got none"):
        Table.from_csv(path, INSTANCE)


def test_a_repeated_column(export):
    rows, _, check = export
    path, findings = check([[*row, row[0]] for row in rows])
    assert findings.counts() == {("columns", "log2_dp_size"): 1}
    with pytest.raises(TableError, match="expected distinct columns, got log2_dp_size twice"):
        Table.from_csv(path, INSTANCE)


@pytest.mark.parametrize("cut", [-1, 1])
def test_rows_that_are_too_short_or_too_long(export, cut):
    rows, _, check = export
    rows[4] = rows[4][:-1] if cut < 0 else [*rows[4], "x"]
    rows[9][rows[0].index("num_layers")] = "41"
    _, findings = check(rows)
    assert [(f.row, f.rule) for f in sorted(findings, key=lambda f: f.row)] == [
        (3, "row_width"), (8, "context"),
    ]  # fmt: skip


def test_duplicates_say_whether_they_disagree(export):
    rows, failed, check = export
    same, other = list(rows[1]), list(rows[2])
    other[rows[0].index("throughput_mean")] = "0.3"
    again = list(rows[failed + 1])
    _, findings = check([*rows, same, other, again])
    found = [(f.row, f.found) for f in findings if f.rule == "distinct"]
    assert [row for row, _ in found] == [379, 380, 381]
    assert found[0][1].endswith("stands in row 0 already with the same throughput")
    assert found[1][1].endswith("row 1 already, throughput 0.212255251 and here 0.3")
    assert found[2][1].endswith("with the same throughput")


def test_all_findings_at_once(export):
    rows, failed, check = export
    rows[1][rows[0].index("num_layers")] = "41"
    rows[2][rows[0].index("num_layers")] = "x"
    rows[3][rows[0].index("peak_mem_normalised")] = "0"
    rows[failed + 1][rows[0].index("peak_mem")] = "95"
    _, findings = check(rows)
    assert sorted((f.row, f.column, f.rule) for f in findings) == sorted(
        [
            (0, "num_layers", "context"),
            (1, "num_layers", "type"),
            (2, "peak_mem_normalised", "margin"),
            (failed, "peak_mem", "unmeasured"),
            (failed, "peak_mem_per_gpu", "largest"),
        ]
    )


@pytest.mark.parametrize(
    ("factor", "unit"), [(1e9 / 2**30, "GiB"), (1e3, "MB"), (1e9 / 2**20, "MiB"), (1e9, "bytes")]
)
def test_a_slip_of_the_unit_of_memory_is_called_so(original, factor, unit, tmp_path):
    data = original("pco32").data
    place = data.schema.get_field_index("peak_mem_per_gpu")
    lists = [f"[{p * factor!r}]" for p in data.column("peak_mem").to_pylist()]
    pq.write_table(
        data.set_column(place, "peak_mem_per_gpu", pa.array(lists)), tmp_path / "a.parquet"
    )
    findings = verify(open_table(tmp_path / "a.parquet"), INSTANCE).findings
    assert findings.counts() == {("largest", "peak_mem_per_gpu"): 339}
    assert all(f.expected.endswith(f"one of the two is in {unit}") for f in findings)


def test_gibibytes_in_the_margin_are_called_so(original, tmp_path):
    table = original("pco32")
    data = table.data
    peak_gib = pa.array(data.column("peak_mem").to_numpy() / 2**30 * 1e9)
    data = data.set_column(data.schema.get_field_index("peak_mem"), "peak_mem", peak_gib)
    data = data.drop_columns(["peak_mem_per_gpu"])
    pq.write_table(data, tmp_path / "a.parquet")
    findings = verify(open_table(tmp_path / "a.parquet"), INSTANCE).findings
    assert findings.counts() == {("margin", "peak_mem_normalised"): 339}
    assert all("in GiB would give" in f.expected for f in findings)


@pytest.mark.parametrize(
    ("column", "values", "kind"),
    [
        ("log2_dp_size", [[5]], "list<"),
        ("throughput_mean", [{"a": 1}], "struct<"),
        ("all_time_steps", [[2.1, 2.2]], "list<"),
        ("throughput_mean", [True], "bool"),
        ("source_memory", [1], "int64"),
    ],
)
def test_parquet_columns_of_another_type(original, tmp_path, column, values, kind):
    data = original("pco32").data
    odd = pa.array(values * len(data))
    if column in data.column_names:
        data = data.drop_columns([column])
    pq.write_table(data.append_column(column, odd), tmp_path / "a.parquet")
    findings = verify(open_table(tmp_path / "a.parquet"), INSTANCE).findings
    assert [(f.row, f.column, f.rule) for f in findings] == [(None, column, "type")]
    assert next(iter(findings)).found.startswith(kind)
    with pytest.raises(TableError, match=f"column {column}: expected .*, got"):
        Table.from_parquet(tmp_path / "a.parquet", INSTANCE)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot read"),
        (b"\xff\xfe\x00a", "cannot read|invalid UTF"),
        (b'a,b\n"unclosed', "missing|expected|cannot read"),
        (b"log2_dp_size\n\xff\n", "cannot read|expected the column"),
        (b"PAR1", "cannot read|expected"),
    ],
)
def test_files_that_are_no_table(tmp_path, content, message):
    for suffix in (".csv", ".parquet"):
        path = tmp_path / f"bad{suffix}"
        path.write_bytes(content)
        with pytest.raises(ParaboltError, match=message):
            Table((open_table(path)).read(), INSTANCE)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "table.xlsx").write_bytes(b"")
    with pytest.raises(TableError, match=r"expected a .csv or .parquet file, got .xlsx"):
        load_table(tmp_path / "table.xlsx", instance=INSTANCE)
    with pytest.raises(TableError, match="cannot read"):
        load_table(tmp_path / "absent.csv", instance=INSTANCE)
    with pytest.raises(TableError, match="expected one Parquet file, got none"):
        load_table(tmp_path, instance=INSTANCE)


def test_a_file_of_far_more_rows_than_configurations_is_refused_before_it_is_read(tmp_path):
    """A few kilobytes that expand a thousand times, and more."""
    four = replace(load_instance("pco32"), levels=(("dp", (2, 4)), ("bucket", (64, 128))))
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"log2_dp_size": [1] * 4_001}), path)
    assert path.stat().st_size < 1_000
    for read in (
        lambda: load_table(path, instance=four),
        lambda: Table.from_parquet(path, four),
        lambda: locate(path, instance=four).verify(),
    ):
        with pytest.raises(TableError, match=r"at most 4 configurations of pco32, got 4001 rows"):
            read()
