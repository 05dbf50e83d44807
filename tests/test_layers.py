"""Imports point downwards only, and heavy libraries stay out until they are used."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src" / "parabolt"

#: Lowest first; packages on one line may not import each other.
LAYERS = (
    ("errors",),
    ("outcome", "lock", "files", "documents"),
    ("space",),
    ("instances",),
    ("tables", "costmodel", "frameworks", "journal", "trainer"),
    ("problems", "optimizers", "planner"),
    ("experiments", "trials", "testing"),
    ("analysis",),
    ("integrations",),
    ("cli",),
    ("__main__",),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}

#: The optimizers' contract drives optimizers on a real problem; nothing imports it.
FILES = sorted(path for path in SRC.rglob("*.py") if path != SRC / "__init__.py")


def part_of(path):
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def imported_parts(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "parabolt" and len(parts) > 1 and parts[1] in RANK:
                yield parts[1]


#: An address of code in a text, such as "parabolt.integrations.ax:AxOptimizer".
ADDRESS = re.compile(r"parabolt\.(\w+)[\w.]*:\w+")
#: Files that hold addresses of higher layers, and of which: what is imported only when asked for.
ADDRESSES_UP = {
    "optimizers/registry.py": {"integrations"},
    "instances/dialects.py": {"frameworks"},
}


def addressed_parts(path):
    """Parts of the package that a file names in texts, to import later."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found = ADDRESS.fullmatch(node.value)
            if found and found[1] in RANK:
                yield found[1]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SRC)))
def test_imports_point_down(path):
    own = part_of(path)
    assert own in RANK, f"{own} has no layer"
    for part in imported_parts(path):
        assert part == own or RANK[part] < RANK[own], f"{path} imports {part}"


def test_addresses_in_texts_point_down_but_for_those_listed():
    up = {}
    for path in FILES:
        own = part_of(path)
        higher = {part for part in addressed_parts(path) if RANK[part] > RANK[own]}
        if higher:
            up[str(path.relative_to(SRC))] = higher
    assert up == ADDRESSES_UP


def test_optimizers_import_no_table_and_no_problem():
    for path in (SRC / "optimizers").rglob("*.py"):
        assert {"tables", "problems", "experiments"}.isdisjoint(imported_parts(path)), path


def test_no_two_classes_have_one_name():
    places = {}
    for path in FILES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path.relative_to(SRC)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


HEAVY = ("torch", "botorch", "optuna", "matplotlib", "pandas", "pyarrow", "scipy", "typer", "rich")


def modules_after(code):
    script = f"import sys\n{code}\nprint(*sys.modules)"
    command = [sys.executable, "-c", script]
    return set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())


#: Libraries that only their integration, or an extra, may load.
OPTIONAL = {
    "torch", "botorch", "gpytorch", "optuna", "optunahub", "cmaes", "nevergrad", "ax", "smac",
    "ConfigSpace", "carps", "gymnasium", "ray", "distributed", "matplotlib", "plotly", "bolt",
    "huggingface_hub", "sklearn", "transformers", "lightning",
}  # fmt: skip


def test_import_is_light():
    loaded = modules_after("import parabolt")
    assert loaded.isdisjoint(HEAVY)


def test_public_names_all_resolve_and_agree_with_the_typed_imports():
    import parabolt

    tree = ast.parse((SRC / "__init__.py").read_text(encoding="utf-8"))
    typed = {
        (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("parabolt.")
        for alias in node.names
    }
    lazy = {
        (f"parabolt.{module}", name)
        for module, names in parabolt._MODULES.items()
        for name in names
    }
    assert typed == lazy
    assert set(parabolt.__all__) == {name for _, name in lazy} | {"__version__"}
    for name in parabolt.__all__:
        assert getattr(parabolt, name) is not None
    assert set(parabolt.__all__) <= set(dir(parabolt))
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        parabolt.Nonsense  # noqa: B018


@pytest.mark.parametrize(
    ("use", "allowed"),
    [
        ("import parabolt; parabolt.load_problem('pco64')", {"pyarrow"}),
        (
            "import parabolt; p = parabolt.load_problem('pco32');"
            "parabolt.make_optimizer('random', p.space)",
            {"pyarrow"},
        ),
        (
            "import parabolt; p = parabolt.load_problem('pco32');"
            "parabolt.make_optimizer('logeic', p.space)",
            {"pyarrow", "scipy"},
        ),
    ],
)
def test_what_is_used_loads_only_what_it_needs(use, allowed):
    allowed = allowed | {"pandas"}  # pyarrow imports it on its own where it is installed
    assert modules_after(use).isdisjoint(set(HEAVY) - allowed)


@pytest.mark.parametrize("name", ["optuna-gp", "nevergrad-ngopt", "ax", "smac"])
def test_an_unused_integration_is_not_loaded(name):
    """Its name is known, and nothing of it is imported until it is asked for."""
    loaded = modules_after(
        "from parabolt.optimizers.registry import LIBRARY_OPTIMIZERS\n"
        f"LIBRARY_OPTIMIZERS[{name!r}]\n"
        "import parabolt; p = parabolt.load_problem('pco32')\n"
        "parabolt.make_optimizer('random', p.space)"
    )
    assert loaded.isdisjoint(OPTIONAL)
    assert not any(module.startswith("parabolt.integrations") for module in loaded)


@pytest.mark.parametrize(
    ("integration", "own"),
    [
        pytest.param(name, own, marks=pytest.mark.needs(f"parabolt.integrations.{name}"))
        for name, own in {
            "optuna": {"optuna"},
            "optunahub": {"optuna", "optunahub"},
            "nevergrad": {"nevergrad", "cmaes", "sklearn", "matplotlib"},
            "configspace": {"ConfigSpace"},
            "gymnasium": {"gymnasium"},
            "botorch": {"torch", "botorch", "gpytorch"},
        }.items()
    ],
)
def test_an_integration_loads_its_own_library_only(integration, own):
    loaded = modules_after(f"import parabolt.integrations.{integration}")
    assert loaded & OPTIONAL <= own
    assert loaded & own


@pytest.mark.parametrize(
    "command",
    [
        "problems",
        "show pco32",
        "evaluate pco32 --config 'dp=32 zero=2 bucket=256'",
        "bench pco32 --optimizers random --seeds 1 --json",
        "--version",
    ],
)
def test_a_command_loads_no_optional_library_that_it_does_not_need(command, tmp_path):
    code = (
        "import os, shlex; import sys as s\n"
        f"os.chdir({str(tmp_path)!r}); s.argv = ['parabolt', *shlex.split({command!r})]\n"
        "from parabolt.cli.main import run\n"
        "try: run()\nexcept SystemExit as end: assert not end.code, end.code"
    )
    needed = {"plotly", "matplotlib"} if command.startswith("bench") else set()  # its report
    assert modules_after(code) & OPTIONAL <= needed


def test_no_optional_library_is_loaded_by_the_command_line():
    loaded = modules_after("import parabolt.cli.main")
    assert loaded.isdisjoint(OPTIONAL | {"pandas"})
    assert "scipy.stats" not in loaded  # half a second that most commands can do without
