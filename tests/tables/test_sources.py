import pickle

import pyarrow.parquet as pq
import pytest

import parabolt
from parabolt.errors import InstanceError, OptionError, TableError, UnknownNameError
from parabolt.instances.catalogue import instance_text, load_instance
from parabolt.problems.registry import load_problem
from parabolt.tables.sources import load_table, locate


def test_embedded_by_name_is_one_object():
    assert load_problem("pco64") is load_problem("pco64")
    assert load_table("pco32").content_hash == load_problem("pco32").content_hash


@pytest.mark.parametrize("name", ["pco32", "pco64"])
@pytest.mark.parametrize("form", ["csv", "parquet", "folder"])
def test_every_path_gives_the_same_problem(name, form, original, published, tmp_path):
    table = original(name)
    path = tmp_path / f"sweep.{form}"
    if form == "csv":
        table.to_csv(path)
    elif form == "parquet":
        table.to_parquet(path)
    else:
        path = published(table)
    for found in (load_problem(path), load_problem(str(path))):
        assert found.name == name
        assert found.content_hash == table.content_hash
        assert found.optimum.value == load_problem(name).optimum.value
    assert pickle.loads(pickle.dumps(load_problem(path))) == load_problem(path)


def test_a_file_is_read_anew_each_time(original, tmp_path):
    path = tmp_path / "sweep.parquet"
    original("pco32").to_parquet(path)
    assert load_problem(path).name == "pco32"
    original("pco64").to_parquet(path)
    assert load_problem(path).name == "pco64"


def test_how_the_instance_is_found(original, tmp_path):
    table = original("pco32")
    path = tmp_path / "sweep.parquet"
    table.to_parquet(path)
    assert locate(path).instance_origin == "built-in, by the context columns"
    own = instance_text("pco32").replace('"pco32"', '"own"')
    (tmp_path / "instance.toml").write_text(own)
    beside = locate(path)
    assert (beside.instance.name, beside.instance_origin) == ("own", "instance.toml")
    given = locate(path, instance=load_instance("pco32"))
    assert (given.instance.name, given.instance_origin) == ("pco32", "as given")


def test_an_instance_that_cannot_be_told(original, tmp_path):
    data = original("pco32").data.drop_columns(["num_layers"])
    pq.write_table(data, tmp_path / "a.parquet")
    with pytest.raises(InstanceError, match=r"expected an instance.toml beside it or the context"):
        load_table(tmp_path / "a.parquet")
    (tmp_path / "instance.toml").write_bytes(b"\xff")
    with pytest.raises(InstanceError, match="cannot read instance file"):
        load_table(tmp_path / "a.parquet")


def test_unknown_names_and_sources():
    with pytest.raises(UnknownNameError, match="unknown table 'pco23': expected one of pco32"):
        load_table("pco23")
    with pytest.raises(UnknownNameError, match="unknown problem 'pco23'"):
        load_problem("pco23")
    with pytest.raises(UnknownNameError, match=r"hub:Glow-AI/pco16_tabular_data@v0\.1\.0"):
        load_table("pco16")
    with pytest.raises(UnknownNameError, match="source='hub'"):
        load_problem("pco16")
    with pytest.raises(OptionError, match="source: expected embedded or hub, got 'web'"):
        load_table("pco32", source="web")


def test_a_folder_with_two_tables(original, published):
    folder = published(original("pco32"))
    (folder / "more.parquet").write_bytes((folder / "data.parquet").read_bytes())
    with pytest.raises(TableError, match=r"expected one Parquet file, got data\.parquet, more"):
        load_table(folder)


def test_another_instance_is_refused(original, tmp_path):
    original("pco32").to_csv(tmp_path / "a.csv")
    with pytest.raises(TableError, match="row 0"):
        load_table(tmp_path / "a.csv", instance=parabolt.load_instance("pco64"))
