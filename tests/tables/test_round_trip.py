"""CSV -> Parquet -> Table -> CSV gives back every cell, bit for bit."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

import parabolt
from parabolt.instances.catalogue import instance_text, load_instance
from parabolt.tables.publishing.build import build
from parabolt.tables.table import Table

INSTANCE = load_instance("pco32")
BASE = parabolt.load_table("pco32")

#: Any double that a finished run may have: tiny, subnormal and huge ones too.
positive = st.floats(min_value=0, exclude_min=True, allow_infinity=False, allow_nan=False)
any_float = st.floats(allow_nan=True, allow_infinity=True)
#: Any text of Unicode that UTF-8 can hold, newlines and quotes included. Null: missing.
text = st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
names = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8
).filter(lambda name: name not in BASE.data.column_names)


@st.composite
def tables(draw):
    rows = draw(st.lists(st.integers(0, len(BASE) - 1), min_size=1, max_size=8, unique=True))
    data = BASE.data.take(pa.array(rows))
    n = len(rows)
    feasible = data.column("ran_successfully").to_numpy()
    columns = {name: data.column(name) for name in data.column_names[:-4]}
    throughput = draw(st.lists(positive, min_size=n, max_size=n))
    blank = draw(st.sampled_from([None, float("nan")]))
    columns["throughput_mean"] = pa.array(
        [t if ok else blank for t, ok in zip(throughput, feasible, strict=True)], pa.float64()
    )
    columns["peak_mem"] = data.column("peak_mem")
    columns["source_throughput"] = pa.array(
        draw(st.lists(text, min_size=n, max_size=n)), pa.string()
    )
    for name in draw(st.lists(names, max_size=3, unique=True)):
        columns[name] = pa.array(draw(st.lists(text, min_size=n, max_size=n)), pa.string())
    # No check looks at these, so they may hold any double at all.
    for name in ("throughput_std", "overall_time"):
        values = draw(st.lists(st.none() | any_float, min_size=n, max_size=n))
        columns[name] = pa.array(values, pa.float64())
    order = draw(st.permutations(list(columns)))
    return pa.table({name: columns[name] for name in order})


def cells(data):
    """Every cell in a form in which only equal bits are equal; texts and nulls as they are."""
    return {
        name: [
            np.float64(v).tobytes() if isinstance(v, float) and not np.isnan(v) else str(v)
            for v in data.column(name).to_pylist()
        ]
        for name in data.column_names
    }


@settings(max_examples=150)
@given(tables())
def test_every_cell_survives(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("round")
    table = Table(data, INSTANCE)
    table.to_csv(folder / "a.csv")
    first = Table.from_csv(folder / "a.csv", INSTANCE)
    first.to_parquet(folder / "a.parquet")
    second = Table.from_parquet(folder / "a.parquet", INSTANCE)
    second.to_csv(folder / "b.csv")
    assert cells(first.data) == cells(data)
    assert cells(second.data) == cells(data)
    assert (folder / "a.csv").read_bytes() == (folder / "b.csv").read_bytes()
    assert second.content_hash == table.content_hash


def test_awkward_values_by_name(tmp_path):
    awkward = [
        "",
        None,
        "nan",
        " ",
        "a,b",
        'say "x"',
        "line\nbreak",
        "crlf\r\n",
        "é 漢字 🚀",
        "NULL",
    ]
    data = BASE.data.slice(0, len(awkward))
    odd = pa.array(
        [-0.0, 5e-324, float("inf"), float("-inf"), float("nan"), None, 0.1, 1e308, 0, 1]
    )
    data = data.append_column("ключ", pa.array(awkward)).append_column("overall_time", odd)
    Table(data, INSTANCE).to_csv(tmp_path / "a.csv")
    again = Table.from_csv(tmp_path / "a.csv", INSTANCE).data
    assert again.column("ключ").to_pylist() == awkward
    assert cells(again) == cells(data)
    assert np.signbit(again.column("overall_time")[0].as_py())


def test_build_keeps_every_cell_too(tmp_path):
    data = BASE.data.append_column("note", pa.array(["", None] * 189 + ["x"]))
    Table(data, INSTANCE).to_csv(tmp_path / "sweep.csv")
    about = {"title": "T", "license": "mit", "version": "v1"}
    text = instance_text("pco32")
    out = tmp_path / "out"
    verification = build(tmp_path / "sweep.csv", INSTANCE, out, instance_text=text, **about)
    assert verification.extra_columns == ["note"]
    assert cells(pq.read_table(out / "data.parquet")) == cells(data)
