import sys
from pathlib import Path

import pytest

from parabolt.trials.spec.file import parse_spec

SCRIPT = Path(__file__).parent / "scripted.py"


@pytest.fixture
def make_spec(tmp_path):
    """A spec on pco16's lattice; its program is the scripted one, `code`, or a whole `command`."""

    def make(*options, code=None, command=None, sections="", instance="pco16"):
        program, first = SCRIPT, ["{configuration}", "--steps={steps}"]
        if code is not None:
            program, first = tmp_path / "program.py", []
            program.write_text(code)
        words = command or [sys.executable, "-S", "-E", str(program), *first, *options]
        quoted = ", ".join(f"'''{word}'''" for word in words)
        trial = "" if "[trial]" in sections else "[trial]\nwarmup_steps = 1\ntimed_steps = 3\n"
        text = f"instance = '{instance}'\ncommand = [{quoted}]\n{trial}{sections}"
        return parse_spec(text, origin="test.toml", folder=tmp_path)

    return make
