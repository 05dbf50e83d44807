"""A real tuning run that is killed on the way and goes on: `make demo-tune`.

Usage: python examples/demo_tune.py [FOLDER]. Needs the extra `torch`.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

SPEC = Path(__file__).with_name("tune-pco4-cpu.toml")
#: The search is killed by SIGKILL while the trial after this many is running.
KILLED_AFTER = 4


def main(folder: Path) -> int:
    """Runs the demonstration; the exit status of the search."""
    shutil.rmtree(folder, ignore_errors=True)
    programs = Path(sys.executable).parent
    os.environ["PATH"] = f"{programs}:{os.environ['PATH']}"  # where the spec's `python` is found
    command = [str(part) for part in (programs / "parabolt", "tune", SPEC, "--out", folder)]
    print(f"$ parabolt tune {SPEC.name} --out {folder}", flush=True)
    first = subprocess.Popen(command)
    while first.poll() is None and not is_under_way(folder / "journal.jsonl", KILLED_AFTER):
        time.sleep(0.2)
    first.send_signal(signal.SIGKILL)
    first.wait()
    print(
        "\n-- killed by SIGKILL while a trial was running; the same command once more:\n",
        flush=True,
    )
    return subprocess.run(command, check=False).returncode


def is_under_way(journal: Path, trial: int) -> bool:
    """Whether an attempt at a trial is running."""
    if not journal.exists():
        return False
    records = [json.loads(line) for line in journal.read_text().splitlines()[1:] if line[-1] == "}"]
    return any(r["kind"] == "launched" and r["trial"] == trial for r in records)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/demo-tune")))
