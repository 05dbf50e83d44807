"""What the README shows is what happens."""

import re
from pathlib import Path

import pytest

import parabolt

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)


def test_the_program_runs_and_finds_something_good(capsys):
    program = next(block for block in BLOCKS if block.startswith("import parabolt"))
    names = {}
    exec(compile(program, "README.md", "exec"), names)
    found = names["problem"].evaluate(names["optimizer"].recommend())
    assert found.throughput > 0.9 * names["problem"].optimum.value
    assert "Optimum(value=0.469575911560675" in capsys.readouterr().out


def test_the_error_shown_is_the_error_raised():
    shown = next(block for block in BLOCKS if block.startswith(">>>"))
    call, _, error = shown.removeprefix(">>> ").partition("\n")
    names = {"parabolt": parabolt, "problem": parabolt.load_problem("pco32")}
    with pytest.raises(parabolt.InvalidConfigurationError) as caught:
        eval(call, names)
    assert " ".join(error.split()) == f"parabolt.errors.{caught.typename}: {caught.value}"


def test_the_package_page_of_the_docstring_is_the_readmes_program():
    program = next(block for block in BLOCKS if block.startswith("import parabolt"))
    docstring = "\n".join(line.strip() for line in parabolt.__doc__.splitlines())
    assert "\n".join(line.strip() for line in program.splitlines()) in docstring


def test_commands_and_files_that_it_names_exist():
    text = (ROOT / "README.md").read_text()
    for path in re.findall(r"\]\(([^)]+)\)", text):
        assert (ROOT / path).exists(), path
    targets = re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    for target in re.findall(r"make ([\w-]+)\n", text):
        assert target in targets
