import numpy as np
import pyarrow as pa
import pytest

import parabolt
from parabolt.errors import OptionError
from parabolt.tables.checks.difference import difference
from parabolt.tables.table import Table


def changed(table, name, values):
    data = table.data
    return Table(data.set_column(data.schema.get_field_index(name), name, values), table.instance)


@pytest.mark.parametrize("name", ["pco32", "pco64"])
def test_a_table_does_not_differ_from_itself(name):
    table = parabolt.load_table(name)
    assert difference(table, table).is_empty


def test_order_is_reported_and_seen_through(pco32):
    table = pco32.table
    order = np.random.default_rng(0).permutation(len(table))
    found = difference(table, Table(table.data.take(pa.array(order)), table.instance))
    assert found.is_reordered
    assert not found.is_empty
    assert found.columns == ()


def test_cells_within_and_beyond_the_tolerance(pco32):
    table = pco32.table
    throughput = table.data.column("throughput_mean").to_numpy().copy()
    rows = np.flatnonzero(table.is_feasible)[[3, 50]]
    throughput[rows] *= [1.0 + 1e-7, 1.0 + 1e-3]
    other = changed(table, "throughput_mean", pa.array(throughput))
    (column,) = difference(table, other).columns
    assert column.column == "throughput_mean"
    assert column.rows_a.tolist() == column.rows_b.tolist() == rows.tolist()
    assert column.largest_relative == pytest.approx(1e-3, rel=1e-2)
    assert column.largest_absolute == pytest.approx(1e-3 * throughput[rows[1]], rel=1e-2)
    (close,) = difference(table, other, rtol=1e-6).columns
    assert close.rows_a.tolist() == [rows[1]]
    assert difference(table, other, rtol=2e-3).is_empty
    assert difference(table, other, atol=1e-3).is_empty


def test_rows_and_columns_of_one_only(pco32, original):
    table = pco32.table
    part = Table(table.data.slice(1), table.instance)
    found = difference(table, part)
    assert found.only_a == (table.space.candidates[0],)
    assert found.only_b == ()
    assert found.columns == ()
    full = difference(table, original("pco32"))
    assert full.columns_only_a == ("source_feasible", "source_throughput", "source_memory")
    assert set(full.columns_only_b) == {
        "throughput_std", "overall_time", "all_time_steps", "peak_mem_per_gpu",
    }  # fmt: skip
    assert full.columns == ()


def test_nan_is_a_value_and_missing_is_nan(pco32):
    table = pco32.table
    blank = pa.array(table.data.column("throughput_mean").to_numpy(), from_pandas=True)
    assert difference(table, changed(table, "throughput_mean", blank)).is_empty


def test_texts(pco32):
    table = pco32.table
    words = table.data.column("source_memory").to_pylist()
    words[7] = "guess"
    (column,) = difference(table, changed(table, "source_memory", pa.array(words))).columns
    assert (column.column, column.rows_a.tolist()) == ("source_memory", [7])
    assert np.isnan(column.largest_absolute)


def test_what_cannot_be_compared(pco32, pco64):
    with pytest.raises(OptionError, match="expected two tables of the same knobs, got pco32"):
        difference(pco32.table, pco64.table)
    with pytest.raises(OptionError, match="expected tolerances of 0 or more"):
        difference(pco32.table, pco32.table, rtol=-1.0)
