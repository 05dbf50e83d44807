"""A training program without training, for tests: speed and endings follow from its arguments.

Usage: scripted.py KNOB=SIZE... with PARABOLT_REPORT set. Options (--name=value):
    steps, seconds (per step), sleep (really, per step), fault, noise (another speed each time)
"""

import json
import os
import sys
import time

options = dict(f"{a[2:]}=".split("=")[:2] for a in sys.argv[1:] if a.startswith("--"))
knobs = dict(a.split("=", 1) for a in " ".join(sys.argv[1:]).split() if "=" in a and a[0] != "-")
sizes = {name: int(size) for name, size in knobs.items()}
fault = options.get("fault", "")


def report(**record):
    with open(os.environ["PARABOLT_REPORT"], "a") as file:  # noqa: PTH123 - the documented helper
        file.write(json.dumps(record) + "\n")


seconds = float(options.get("seconds", 0)) or 1.0 + 0.1 * sizes["tp"] + 0.3 * sizes["pp"] + 0.01 * (
    sizes["zero"] + sizes["bucket"] % 7
)
if "noise" in options:
    seconds += 0.3 * int.from_bytes(os.urandom(2), "big") / 65536
if "oom-if-dp4" in fault and sizes["dp"] == 4 and sizes["zero"] == 0:
    sys.exit("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB.")
if "crash-if-tp4" in fault and sizes["tp"] == 4:
    sys.exit("ValueError: tp 4 is broken")
for step in range(int(options.get("steps", 4))):
    time.sleep(float(options.get("sleep", 0)))
    report(step=step, seconds=seconds * (1 + 0.001 * (step % 3)))
for rank in range(4):
    report(rank=rank, peak_memory_gib=0.01 * (rank + 1))
