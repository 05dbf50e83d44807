import pickle

import numpy as np
import pyarrow as pa
import pytest

import parabolt
from parabolt.errors import TableError
from parabolt.instances.catalogue import load_instance
from parabolt.tables.table import Table

HEADER = (
    "log2_dp_size,log2_tp_size,log2_pp_size,log2_cp_size,log2_sp_size,log2_dp_bucket_size_mb,"
    "zero_stage,log2_num_model_chunks,num_layers,num_attention_heads,hidden_size,ffn_hidden_size,"
    "batch_size,seq_length,log2_num_gpus,log2_num_hosts,log2_grad_accum_steps,ran_successfully,"
    "throughput_mean,peak_mem,peak_mem_normalised"
)
CONTEXT = "40,40,5120,17408,512,8192,5,3,0"
ROWS = (
    f"5,0,0,0,0,8,2,0,{CONTEXT},True,0.469575911560675,82.56,-0.14",
    f"5,0,0,0,0,9,2,0,{CONTEXT},False,,inf,0.2",
    f"1,2,2,0,1,6,0,0,{CONTEXT},True,0.25,48.0,-0.5",
)


def write(path, *, header=HEADER, rows=ROWS):
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def read(path):
    return Table.from_csv(path, load_instance("pco32"))


def test_a_small_export(tmp_path):
    table = read(write(tmp_path / "sweep.csv"))
    assert len(table) == 3
    assert table.is_feasible.tolist() == [True, False, True]
    outcome = table.outcomes[0]
    assert (outcome.status, outcome.throughput) == ("ok", 0.469575911560675)
    assert (outcome.peak_memory_gib, outcome.memory_margin) == (82.56, -0.14)
    assert outcome.throughput_source == outcome.memory_source == "measured"
    failed = table.outcomes[1]
    assert np.isnan(failed.throughput)
    assert (failed.status, failed.memory_margin, failed.throughput_source) == ("oom", 0.2, "none")
    assert str(table.space.candidates[2]) == "dp2 tp4 pp4 cp1 sp2 bucket64 zero0 chunks1"


def test_margin_is_computed_where_it_is_not_recorded(tmp_path):
    header = HEADER.removesuffix(",peak_mem_normalised")
    rows = [row.rsplit(",", 1)[0] for row in ROWS]
    table = read(write(tmp_path / "sweep.csv", header=header, rows=rows))
    assert table.outcomes.memory_margin.tolist() == [82.56 / 96 - 1, 0.2, -0.5]


def test_parquet_gives_the_same_table(tmp_path):
    table = read(write(tmp_path / "sweep.csv"))
    table.to_parquet(tmp_path / "data.parquet")
    again = Table.from_parquet(tmp_path / "data.parquet", table.instance)
    assert again.content_hash == table.content_hash
    assert again.data.column("throughput_mean")[0].as_py() == 0.469575911560675
    assert again.version == "unversioned"


def test_version_travels_in_the_file(tmp_path):
    path = write(tmp_path / "sweep.csv")
    table = Table.from_csv(path, load_instance("pco32"), version="v7")
    table.to_parquet(tmp_path / "data.parquet")
    assert Table.from_parquet(tmp_path / "data.parquet", table.instance).version == "v7"


def test_hash_knows_every_value_but_not_null_from_nan():
    table = parabolt.load_table("pco32")
    data, name = table.data, "throughput_mean"
    place = data.schema.get_field_index(name)
    values = data.column(name).to_numpy().copy()
    nulls = pa.array(values, from_pandas=True)
    as_nulls = Table(data.set_column(place, name, nulls), table.instance)
    assert nulls.null_count == 40
    assert as_nulls.content_hash == table.content_hash
    values[3] = np.nextafter(values[3], 1.0)
    changed = Table(data.set_column(place, name, pa.array(values)), table.instance)
    assert changed.content_hash != table.content_hash


def test_embedded_hashes_are_pinned():
    """A change of the embedded data must be a decision."""
    assert {n: parabolt.load_table(n).content_hash[:16] for n in ("pco32", "pco64")} == {
        "pco32": "3c4334851441a32f",
        "pco64": "bd74d3e041b72652",
    }


def test_pickles():
    table = parabolt.load_table("pco32")
    again = pickle.loads(pickle.dumps(table))
    assert again.content_hash == table.content_hash
    assert again.version == table.version


def swap(row, column, value):
    rows = [row_text.split(",") for row_text in ROWS]
    rows[row][HEADER.split(",").index(column)] = value
    return [",".join(cells) for cells in rows]


@pytest.mark.parametrize(
    ("row", "column", "value", "message"),
    [
        (0, "log2_dp_size", "4.5", "row 0, column log2_dp_size: expected a whole number, got 4.5"),
        (2, "log2_dp_size", "x", "row 2, column log2_dp_size: expected a number, got 'x'"),
        (2, "log2_dp_size", "", "row 2, column log2_dp_size: expected a number, got ''"),
        (1, "zero_stage", "1", "row 1, column zero_stage: expected 0, 2 or 3, got 1"),
        (2, "zero_stage", "2", "row 2: .* ZeRO stage 2 goes only without pipeline stages"),
        (0, "log2_tp_size", "1", "row 0: .* = 64, expected the 32 GPUs"),
        (
            0,
            "log2_dp_bucket_size_mb",
            "11",
            "row 0, column log2_dp_bucket_size_mb: expected 6, 7, 8 or 9 ",
        ),
        (1, "log2_dp_bucket_size_mb", "8", "row 1: .* stands in row 0 already"),
        (1, "num_layers", "41", "row 1, column num_layers: expected 40 as pco32 has it, got 41"),
        (1, "ran_successfully", "maybe", "row 1, .*: expected True or False, got 'maybe'"),
        (0, "throughput_mean", "", "row 0, column throughput_mean: expected a positive number"),
        (0, "throughput_mean", "-1", "row 0, column throughput_mean: expected a positive number"),
        (0, "throughput_mean", "inf", "row 0, column throughput_mean: expected a positive number"),
        (1, "throughput_mean", "0.3", "row 1, column throughput_mean: expected NaN where the run"),
        (0, "peak_mem", "-3", "row 0, column peak_mem: expected a positive number where the run"),
        (0, "peak_mem", "inf", "row 0, column peak_mem: expected a positive number where the run"),
        (1, "peak_mem", "97", "row 1, column peak_mem: expected inf where the run ran out of"),
        (2, "peak_mem_normalised", "-0.4", "row 2, .* expected -0.5 .*got -0.4"),
        (1, "peak_mem_normalised", "0.1", "row 1, column peak_mem_normalised: expected 0.2"),
    ],
)
def test_a_fault_is_named_by_row_and_column(tmp_path, row, column, value, message):
    path = write(tmp_path / "sweep.csv", rows=swap(row, column, value))
    with pytest.raises(TableError, match=message):
        read(path)


def test_missing_column(tmp_path):
    path = write(tmp_path / "sweep.csv", header=HEADER.replace("zero_stage", "zero"))
    with pytest.raises(TableError, match="column zero_stage: expected the column, got none"):
        read(path)


def test_no_rows(tmp_path):
    with pytest.raises(TableError, match="expected at least one row"):
        read(write(tmp_path / "sweep.csv", rows=()))


def test_unreadable_files(tmp_path):
    with pytest.raises(TableError, match="cannot read"):
        read(tmp_path / "absent.csv")
    (tmp_path / "text.parquet").write_text("no parquet")
    with pytest.raises(TableError, match="cannot read"):
        Table.from_parquet(tmp_path / "text.parquet", load_instance("pco32"))


def test_embedded_tables_are_the_conversion_of_the_csv_tables(tmp_path):
    """The embedded file, written as CSV and read back, is the same to the last bit."""

    table = parabolt.load_table("pco64")
    table.to_csv(tmp_path / "pco64.csv")
    again = Table.from_csv(tmp_path / "pco64.csv", table.instance)
    assert again.content_hash == table.content_hash
