"""A real tuning run that is killed on the way and goes on: `make demo-tune`.

Usage: python examples/demo_tune.py [FOLDER]. Needs the extra `torch`.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

SPEC = Path(__file__).with_name("tune-pco4-cpu.toml")
#: The search is killed by SIGKILL while a trial after this many is running, and after so many of
#: its steps: a trial that runs out of memory does so before, and ends by itself.
KILLED_AFTER, KILLED_AFTER_STEPS = 4, 3


def main(folder: Path) -> int:
    """Runs the demonstration; the exit status of the search."""
    shutil.rmtree(folder, ignore_errors=True)
    programs = Path(sys.executable).parent
    os.environ["PATH"] = f"{programs}:{os.environ['PATH']}"  # where the spec's `python` is found
    command = [str(part) for part in (programs / "parabolt", "tune", SPEC, "--out", folder)]
    print(f"$ parabolt tune {SPEC.name} --out {folder}", flush=True)
    first = subprocess.Popen(command)
    while first.poll() is None and not is_training(folder):
        time.sleep(0.05)
    first.send_signal(signal.SIGKILL)
    first.wait()
    print(
        "\n-- killed by SIGKILL while a trial was running; the same command once more:\n",
        flush=True,
    )
    return subprocess.run(command, check=False).returncode


def is_training(folder: Path) -> bool:
    """Whether the trial that is to be killed runs, and has more to do."""
    reports = sorted(folder.glob("trials/*/attempt-*/report.jsonl"))
    if not reports or int(reports[-1].parents[1].name) < KILLED_AFTER:
        return False
    steps = [line for line in reports[-1].read_text().splitlines() if '"seconds"' in line]
    return len(steps) >= KILLED_AFTER_STEPS


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/demo-tune")))
