import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from parabolt.instances.catalogue import load_instance
from parabolt.tables.reading.conversion import convert

INSTANCE = load_instance("pco32")


def floats(cells):
    raw = pa.table({"throughput_mean": pa.array(cells, pa.string())})
    block = convert(raw, np.arange(len(cells)), INSTANCE)
    bad = [int(f.row) for group in block.findings for f in group]
    return block.data.column("throughput_mean").to_pylist(), bad


def arrow_reads(cell):
    try:
        return pa.array([cell]).cast(pa.float64())[0].as_py()
    except pa.ArrowInvalid:
        return None


@given(st.lists(st.text("0123456789.eE+-infatyNAxX()_ ", max_size=7), min_size=1, max_size=12))
@example(["1", "nan(x)", "5.", ".5", "+1", "1e5", "-Infinity", "1e", "0x1", "--1", "1 2", "."])
def test_every_cell_is_read_as_alone_whatever_its_neighbours(cells):
    values, bad = floats(cells)
    for i, cell in enumerate(cells):
        alone = arrow_reads(cell.strip())
        assert (i in bad) == (alone is None and cell.strip() != "")
        assert np.array_equal(
            np.float64(np.nan if values[i] is None else values[i]),
            np.float64(np.nan if alone is None else alone),
            equal_nan=True,
        )


def test_a_column_without_a_single_number_is_bad_in_every_row():
    _, bad = floats([f"{i} GB" for i in range(100_000)])
    assert len(bad) == 100_000
