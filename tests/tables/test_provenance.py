"""How rows were measured: from the sweep to the card."""

import json
import sys

import pytest

import parabolt
from parabolt.errors import TableError
from parabolt.instances.catalogue import instance_text
from parabolt.tables.publishing.build import build
from parabolt.tables.publishing.provenance import Provenance, provenance_path
from parabolt.trials.spec.file import parse_spec
from parabolt.trials.sweep import EXPORT, sweep

FULL = Provenance("H100", "nanotron 0.4", "torchrun x.py --tp {tp} `y`", "2025-01-02", ("a|b",))


def card_of(tmp_path, provenance=None):
    table = parabolt.load_table("pco4-cpu")
    table.to_csv(tmp_path / "m.csv")
    about = {"version": "v1", "title": "T", "license": "mit", "provenance": provenance}
    text = instance_text("pco4-cpu")
    build(tmp_path / "m.csv", table.instance, tmp_path / "out", instance_text=text, **about)
    return (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


def test_a_card_states_gpu_software_command_and_date(tmp_path):
    text = card_of(tmp_path, FULL)
    assert text.endswith(
        "## Measured with\n\n- GPU: H100\n- Software: nanotron 0.4\n"
        "- Command: `` torchrun x.py --tp {tp} `y` ``\n- Date: 2025-01-02\n\n"
        "## Provenance\n\n`m.csv`, converted to Parquet with every value unchanged.\n\n- a\\|b\n"
    )


def test_what_is_not_known_is_not_said(tmp_path):
    text = card_of(tmp_path, Provenance(gpu="H100"))
    assert "## Measured with\n\n- GPU: H100\n\n## Provenance\n\n`m.csv`" in text
    assert "Software" not in text


def test_by_default_it_is_read_beside_the_export(tmp_path):
    FULL.save(tmp_path / "m.csv")
    assert provenance_path(tmp_path / "m.csv").name == "m.provenance.json"
    assert Provenance.load(tmp_path / "m.csv") == FULL
    assert "- Date: 2025-01-02\n" in card_of(tmp_path)
    assert Provenance.load(tmp_path / "other.csv") == Provenance()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "cannot read .*m.provenance.json"),
        ("[]", "expected an object with keys among gpu, software, command, date, notes"),
        ('{"gpus": ""}', "expected an object with keys among gpu"),
        ('{"gpu": 3}', "gpu: expected a text, got 3"),
        ('{"notes": "x"}', "notes: expected a list of texts, got 'x'"),
        ('{"notes": [1]}', r"notes: expected a list of texts, got \[1\]"),
        ("[" * 100_000, "cannot read .*m.provenance.json"),
    ],
)
def test_what_is_no_provenance_is_refused(text, complaint, tmp_path):
    provenance_path(tmp_path / "m.csv").write_text(text)
    with pytest.raises(TableError, match=complaint):
        Provenance.load(tmp_path / "m.csv")


def test_a_sweep_says_how_it_measured(tmp_path):
    (tmp_path / "i.toml").write_text(
        "name = 'one'\nmodel = {n_layers = 2, n_heads = 2, hidden_size = 8, ffn_size = 8}\n"
        "cluster = {n_gpus = 1, n_hosts = 1, memory_gib = 8, gpu = 'h200'}\n"
        "workload = {sequence_length = 8, batch_size = 8}\nknobs = {bucket = [1, 2]}\n"
    )
    (tmp_path / "job.py").write_text(
        "import json, os\n"
        "with open(os.environ['PARABOLT_REPORT'], 'a') as file:\n"
        "    for step in range(3):\n"
        "        file.write(json.dumps({'step': step, 'seconds': 0.001}) + chr(10))\n"
        "    file.write(json.dumps({'rank': 0, 'peak_memory_gib': 4}) + chr(10))\n"
    )
    spec = parse_spec(
        f"instance = 'i.toml'\ncommand = ['{sys.executable}', 'job.py', '{{bucket}}']\n"
        "[trial]\nwarmup_steps = 1\ntimed_steps = 2\n"
        f"[launcher]\nworking_directory = '{tmp_path}'\n",
        origin="s",
        folder=tmp_path,
    )
    sweep(spec, tmp_path / "s")
    found = json.loads((tmp_path / "s" / "sweep.provenance.json").read_text())
    assert found["gpu"] == "h200"
    assert found["command"] == f"{sys.executable} job.py '{{bucket}}'"
    assert found["software"] == f"measured with parabolt {parabolt.__version__}"
    assert len(found["date"]) == len("2025-01-02")
    assert Provenance.load(tmp_path / "s" / EXPORT).gpu == "h200"
