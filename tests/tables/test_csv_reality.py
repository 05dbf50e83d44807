"""What raw exports look like in the wild is accepted; nothing of it changes a value."""

import csv
import io

import pyarrow as pa
import pytest

import parabolt
from parabolt.instances.catalogue import load_instance
from parabolt.tables.checks.verification import verify
from parabolt.tables.reading.reader import open_table
from parabolt.tables.table import Table

INSTANCE = load_instance("pco32")


@pytest.fixture
def export(original, tmp_path):
    """A sound table, its rows of texts (header first), and a reader of changed rows."""
    table = original("pco32")
    path = tmp_path / "sweep.csv"
    table.to_csv(path)
    rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))

    def read(changed, *, encoding="utf-8", end="\n"):
        with path.open("w", newline="", encoding=encoding) as file:
            csv.writer(file, lineterminator=end).writerows(changed)
        assert list(verify(open_table(path), INSTANCE).findings) == []
        return Table.from_csv(path, INSTANCE)

    return table, rows, read


def replaced(rows, column, change):
    at = rows[0].index(column)
    return [rows[0]] + [[*row[:at], change(row[at]), *row[at + 1 :]] for row in rows[1:]]


def test_byte_order_mark(export):
    table, rows, read = export
    assert read(rows, encoding="utf-8-sig").content_hash == table.content_hash


def test_crlf(export):
    table, rows, read = export
    assert read(rows, end="\r\n").content_hash == table.content_hash


@pytest.mark.parametrize(
    ("column", "change"),
    [
        ("log2_dp_size", lambda cell: f"{cell}.0"),
        ("zero_stage", lambda cell: f" {cell} "),
        ("seq_length", lambda cell: "8.192e3"),
        ("ran_successfully", str.capitalize),
        ("ran_successfully", str.upper),
        ("ran_successfully", lambda cell: str(int(cell == "true"))),
        ("throughput_mean", lambda cell: "" if cell == "nan" else cell),
        ("throughput_mean", lambda cell: "NaN" if cell == "nan" else f"+{cell}"),
        ("peak_mem", lambda cell: "Infinity" if cell == "inf" else cell),
        ("peak_mem", lambda cell: "+inf" if cell == "inf" else f"{cell} "),
        ("peak_mem_normalised", lambda cell: f"{cell}000"),
    ],
)
def test_spellings_of_the_same_value(export, column, change):
    table, rows, read = export
    assert read(replaced(rows, column, change)).content_hash == table.content_hash


def test_other_order_of_columns(export):
    table, rows, read = export
    again = read([row[::-1] for row in rows])
    assert again.content_hash == table.content_hash
    assert again.data.column_names == rows[0][::-1]


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "comment"])
@pytest.mark.parametrize("at", [0, None])
def test_extra_columns_are_kept_and_reported(export, name, at, tmp_path):
    table, rows, read = export
    at = len(rows[0]) if at is None else at
    extra = [name, *(f"{i:03d}" for i in range(len(rows) - 1))]
    again = read([[*row[:at], cell, *row[at:]] for row, cell in zip(rows, extra, strict=True)])
    assert again.data.column(name).to_pylist() == extra[1:]
    assert again.data.column_names[at] == name
    assert Table(again.data.drop_columns([name]), INSTANCE).content_hash == table.content_hash
    again.to_parquet(tmp_path / "a.parquet")
    assert verify(open_table(tmp_path / "a.parquet"), INSTANCE).extra_columns == [name]


def test_string_lists_are_kept_as_texts(export):
    _, rows, read = export
    at = rows[0].index("all_time_steps")
    assert rows[1][at].startswith("[")
    spaced = replaced(rows, "all_time_steps", lambda cell: cell.replace(", ", " ,"))
    assert read(spaced).data.column("all_time_steps")[0].as_py() == spaced[1][at]


def test_lists_of_failed_runs_may_be_blank(export):
    _, rows, read = export
    rows = replaced(rows, "all_time_steps", lambda cell: "" if cell == "[nan]" else cell)
    read(replaced(rows, "peak_mem_per_gpu", lambda cell: "[]" if "inf" in cell else cell))


def test_whole_numbers_of_any_parquet_type():
    table = parabolt.load_table("pco32")
    data = table.data
    for kind in (pa.int8(), pa.uint32(), pa.float64(), pa.float32(), pa.string(), pa.int64()):
        for name in ("log2_dp_size", "zero_stage", "seq_length"):
            if kind == pa.int8() and name == "seq_length":
                continue
            place = data.schema.get_field_index(name)
            data = data.set_column(place, name, data.column(name).cast(kind))
        assert Table(data, INSTANCE).content_hash == table.content_hash
    texts = data.column("source_memory").cast(pa.large_string()).dictionary_encode()
    place = data.schema.get_field_index("source_memory")
    again = Table(data.set_column(place, "source_memory", texts), INSTANCE)
    assert again.content_hash == table.content_hash
