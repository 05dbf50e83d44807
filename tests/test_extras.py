"""Without a library, what needs it names the extra that brings it, in one line."""

import ast
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]

PROBLEM = "import parabolt; p = parabolt.load_problem('pco32'); "
OPTIMIZER = PROBLEM + "parabolt.make_optimizer({!r}, p.space)"

#: What is done, the modules that are not there, the library and the extra that the message names.
CASES = {
    "tpe": (OPTIMIZER.format("tpe"), "optuna", "optuna", "optuna"),
    "cmaes": (OPTIMIZER.format("cmaes"), "cmaes", "cmaes", "optuna"),
    "optuna-gp": (OPTIMIZER.format("optuna-gp"), "optuna", "optuna", "optuna"),
    "ax": (OPTIMIZER.format("ax"), "ax", "ax-platform", "ax"),
    "smac": (OPTIMIZER.format("smac"), "smac", "smac", "smac"),
    "nevergrad": (OPTIMIZER.format("nevergrad-ngopt"), "nevergrad", "nevergrad", "nevergrad"),
    "configspace": (
        "import parabolt.integrations.configspace", "ConfigSpace", "ConfigSpace", "smac"),
    "carps": ("import parabolt.integrations.carps", "carps", "carps", "carps"),
    "gymnasium": ("import parabolt.integrations.gymnasium", "gymnasium", "gymnasium", "gymnasium"),
    "botorch": ("import parabolt.integrations.botorch", "botorch", "botorch", "botorch"),
    "optunahub": ("import parabolt.integrations.optunahub", "optunahub", "optunahub", "optunahub"),
    "ray tune": ("import parabolt.integrations.ray_tune", "ray", "ray[tune]", "ray-tune"),
    "hub": ("import parabolt; parabolt.load_problem('pco32', source='hub')", "huggingface_hub",
            "huggingface_hub", "hub"),
    "transformers": ("import parabolt.integrations.transformers", "transformers", "transformers",
                     "transformers"),
    "lightning": ("import parabolt.integrations.lightning", "lightning", "lightning", "lightning"),
    "trainer": ("import parabolt.trainer.__main__", "torch", "torch", "torch"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_message_names_library_and_extra(case, tmp_path):
    code, module, library, extra = case
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.modules[{module!r}] = None\n{code}"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    message = re.compile(rf"(\S+) is not installed; try: pip install 'parabolt\[{extra}\]'$")
    named = message.search(done.stderr.splitlines()[-1])[1]
    # On the core alone another library of the extra may be missing first.
    assert named == library or (named in requirements(extra) and not is_installed(named))


def is_installed(distribution):
    return any(d.name == distribution for d in importlib.metadata.distributions())


def calls_of_missing():
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "MissingDependencyError.of":
                yield path, *(ast.literal_eval(argument) for argument in node.args)


def requirements(extra):
    for text in EXTRAS[extra]:
        if own := re.fullmatch(r"parabolt\[(.*)\]", text):
            for name in own[1].split(","):
                yield from requirements(name)
        else:
            yield re.split(r"[<>=!~;]", text)[0].strip()


def test_every_extra_that_a_message_names_brings_its_library():
    found = list(calls_of_missing())
    assert len(found) > 10
    for path, library, extra in found:
        assert extra in EXTRAS, path
        assert library in set(requirements(extra)), (path, library, extra)
