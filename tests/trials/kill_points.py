"""Kills a scripted search at many points, resumes it, and compares the history.

Usage: kill_points.py FOLDER. The last line of the output is the result as JSON. The search runs in
forks of this process, so that 200 of them take a minute. A fork is killed by SIGKILL in the middle
of a record, after it, or while an attempt is running.
"""

import itertools
import json
import os
import signal
import sys
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"

from parabolt.journal import file as journal
from parabolt.journal.file import JOURNAL, read_journal
from parabolt.journal.history import TrialHistory
from parabolt.trials.attempt import AttemptRunner
from parabolt.trials.launchers.local import _marked_processes
from parabolt.trials.spec.file import parse_spec
from parabolt.trials.tune import tune

PROGRAM = r"""
case "$1" in
  *"tp=8"*) echo "ValueError: tp 8" >&2; exit 1 ;;
  *"dp=16"*) echo "torch.OutOfMemoryError: CUDA out of memory." >&2; exit 1 ;;
esac
code=$(printf %s "$1" | cksum); code=${code%% *}
s=1.$((code % 1000))
for step in 0 1 2; do printf '{"step": %d, "seconds": %s}\n' $step $s; done >> "$PARABOLT_REPORT"
printf '{"rank": 0, "peak_memory_gib": %d}\n' $((code % 60 + 1)) >> "$PARABOLT_REPORT"
"""
SPEC = """
instance = "pco16"
command = ["/bin/sh", "{program}", "{{configuration}}"]
[trial]
warmup_steps = 1
timed_steps = 2
[budget]
trials = 3
[optimizer]
name = "{optimizer}"
"""
#: Searches by name: optimizer, its options, and the ways to be killed.
EVERY_WAY = ("torn", "after", "run")  # before a record is after the one before it
SEARCHES = {
    "model": ("logeic", "n_initial = 2\n", ("after", "run")),
    **{f"random{n}": ("random", f"seed = {n}\n", EVERY_WAY) for n in range(8)},
}


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def arm(mode, number):
    """Makes this process die at the given point."""
    counter = itertools.count()
    append, watch = journal.Journal.append, AttemptRunner._watch_job

    def dying_append(self, record):
        if mode != "run" and next(counter) == number:
            if mode == "torn":
                line = json.dumps(record).encode()
                os.write(self._file, line[: len(line) // 2])
            if mode == "after":
                append(self, record)
            die()
        append(self, record)

    def dying_watch(self, *arguments):
        if mode == "run" and next(counter) == number:
            die()
        return watch(self, *arguments)

    journal.Journal.append, AttemptRunner._watch_job = dying_append, dying_watch


def search(spec, folder, mode=None, number=0):
    """Runs the search in a fork; the signal that ended it, or 0."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if mode:
                arm(mode, number)
            tune(spec, folder)
            code = 0
        finally:
            os._exit(code)
    return os.WTERMSIG(os.waitpid(child, 0)[1])


def told(folder):
    trials = TrialHistory.of(read_journal(folder / JOURNAL)).trials
    return [
        (str(t.configuration), str(t.outcome.status), repr(t.outcome.throughput),
         repr(t.outcome.memory_margin), t.n_crashed)
        for t in trials
    ]  # fmt: skip


def main(folder):
    program = folder / "program.sh"
    program.write_text(PROGRAM)
    n_points = n_leftover = n_relaunched = 0
    different = []
    for name, (optimizer, options, modes) in SEARCHES.items():
        text = SPEC.format(program=program, optimizer=optimizer) + options
        spec = parse_spec(text, origin="test", folder=folder)
        reference = folder / name
        assert search(spec, reference) == 0
        whole = told(reference)
        records = read_journal(reference / JOURNAL)
        n_launched = sum(record["kind"] == "launched" for record in records)
        points = [
            (mode, n)
            for mode in modes
            for n in range(n_launched if mode == "run" else len(records))
        ]
        for mode, number in points:
            there = folder / f"{name}-{mode}-{number}"
            killed = search(spec, there, mode, number)
            assert killed == signal.SIGKILL, (mode, number, killed)
            assert search(spec, there) == 0
            n_points += 1
            if told(there) != whole:
                different.append([name, mode, number])
            again = sum(r["kind"] == "launched" for r in read_journal(there / JOURNAL))
            n_relaunched += again - n_launched > 1
            n_leftover += any(_marked_processes(str(p)) for p in there.glob("trials/*/*"))
    sys.stdout.write(
        json.dumps(
            {
                "n_points": n_points,
                "different": different,
                "n_leftover_processes": n_leftover,
                "n_launched_more_than_once_too_often": n_relaunched,
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
