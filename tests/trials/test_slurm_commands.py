"""What is asked of Slurm's commands and read from their answers, with commands that play Slurm."""

import json
import sys
from pathlib import Path

import pytest

from parabolt.errors import LaunchError
from parabolt.instances.catalogue import load_instance
from parabolt.trials.launchers.launcher import Exit, Launch, StartError
from parabolt.trials.launchers.slurm import SlurmLauncher

TWO_HOSTS = Path(__file__).parent / "two_hosts.toml"

#: Notes its arguments, and gives the next of its answers, the last one again and again.
COMMAND = """#!{python} -SE
import json, os, sys
name = os.path.basename(sys.argv[0])
folder = os.path.dirname(os.path.abspath(sys.argv[0]))
with open(os.path.join(folder, "calls"), "a") as file:
    file.write(json.dumps([name, *sys.argv[1:]]) + "\\n")
path = os.path.join(folder, name + ".json")
answers = json.load(open(path)) if os.path.exists(path) else [[0, "", ""]]
code, out, error = answers[0]
if len(answers) > 1:
    json.dump(answers[1:], open(path, "w"))
sys.stdout.write(out)
sys.stderr.write(error)
sys.exit(code)
"""


class Commands:
    """Commands of Slurm that answer what they are told to."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        for name in ("sbatch", "scontrol", "sacct", "squeue", "scancel"):
            path = folder / name
            path.write_text(COMMAND.format(python=sys.executable))
            path.chmod(0o755)

    def answer(self, name, *answers):
        """The next answers of a command: texts, or exit code, output and error."""
        each = [[0, answer, ""] if isinstance(answer, str) else list(answer) for answer in answers]
        (self.folder / f"{name}.json").write_text(json.dumps(each))

    @property
    def calls(self):
        path = self.folder / "calls"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def commands(tmp_path, monkeypatch):
    made = Commands(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(made.folder))
    monkeypatch.setattr("parabolt.trials.launchers.slurm._MIN_POLL_S", 0.01)
    return made


@pytest.fixture
def start(tmp_path, commands):
    def make(answer="4711", time_limit_s=90.0):
        commands.answer("sbatch", answer)
        folder = tmp_path / "100%"
        folder.mkdir()
        launch = Launch(
            arguments=("train", "a b"),
            variables={"PARABOLT_REPORT": "r"},
            folder=folder,
            log_folder=folder / "logs",
            working_folder=tmp_path,
            time_limit_s=time_limit_s,
        )
        launcher = SlurmLauncher(
            load_instance(str(TWO_HOSTS)).cluster, options=("--partition=gpu",)
        )
        return launcher.start(launch)

    return make


@pytest.mark.parametrize(("limit", "minutes"), [(90.0, 3), (59.0, 2), (3600.0, 62)])
def test_a_job_is_handed_in(start, commands, tmp_path, limit, minutes):
    start("4711;cluster\n", time_limit_s=limit)
    (call,) = commands.calls
    name = call.pop(5)
    assert name.startswith("--job-name=parabolt-")
    assert call == [
        "sbatch", "--parsable", f"--time={minutes}", "--export=ALL", "--open-mode=truncate",
        "--nodes=2", "--ntasks-per-node=1", f"--output={tmp_path}/100%%/logs/output.log",
        f"--chdir={tmp_path}", "--partition=gpu", f"{tmp_path}/100%/job.sh", "train", "a b",
    ]  # fmt: skip
    assert (tmp_path / "100%/slurm_job").read_text() == "4711\n"


def test_a_job_that_is_refused(start):
    with pytest.raises(StartError, match=r"rejected the job: sbatch: error: invalid partition$"):
        start((1, "", "sbatch: error:\n invalid partition\n"))


def shown(state, *, code="0:0", reason="None", restarts=0):
    return (
        f"JobId=4711 JobName=x Reason={reason} JobState={state} Restarts={restarts} "
        f"ExitCode={code} WorkDir=/\n"
    )


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        (shown("COMPLETED"), Exit(0, "COMPLETED")),
        (shown("FAILED", code="3:0", reason="NonZeroExit"), Exit(3, "FAILED", "NonZeroExit")),
        (shown("FAILED", code="0:9"), Exit(-9, "FAILED")),
        (shown("OUT_OF_MEMORY", code="0:125"), Exit(-125, "OUT_OF_MEMORY")),
        (shown("NODE_FAIL", code="1:0"), Exit(1, "NODE_FAIL")),
    ],
)  # fmt: skip
def test_how_a_job_ended(start, commands, answer, end):
    job = start()
    commands.answer("scontrol", shown("PENDING"), shown("RUNNING"), shown("COMPLETING"), answer)
    assert job.wait(20) == end
    assert commands.calls[1:] == [["scontrol", "show", "job", "--oneliner", "4711"]] * 4
    assert job.wait(0) == end
    assert len(commands.calls) == 5, "an ended job is not asked for again"


FORGOTTEN = (1, "", "slurm_load_jobs error: Invalid job id specified\n")


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        ("OUT_OF_MEMORY|0:125\n", Exit(-125, "OUT_OF_MEMORY")),
        ("CANCELLED by 1000|0:15\n", Exit(-15, "CANCELLED")),
        ("", Exit(scheduler_reason="the scheduler has forgotten the job")),
        ((1, "A|0:0", "no accounting"), Exit(None, None, "the scheduler has forgotten the job")),
    ],
)
def test_the_accounting_is_asked_where_the_controller_has_forgotten(start, commands, answer, end):
    job = start()
    commands.answer("scontrol", (1, "", "Unable to contact slurm controller"), FORGOTTEN)
    commands.answer("sacct", answer)
    assert job.wait(20) == end
    assert [call[0] for call in commands.calls] == ["sbatch", "scontrol", "scontrol", "sacct"]
    assert commands.calls[-1] == [
        "sacct", "-X", "-n", "-P", "-j", "4711", "-o", "State,ExitCode",
    ]  # fmt: skip


def test_time_in_the_queue_does_not_count_and_begins_anew(start, commands):
    job = start()
    commands.answer("scontrol", shown("PENDING"))
    assert job.wait(0) is None
    assert job.running_time_s == 0
    commands.answer("scontrol", shown("RUNNING"))
    assert job.wait(0.3) is None
    before = job.running_time_s
    assert 0 < before < 10
    commands.answer("scontrol", shown("PENDING", restarts=1))
    assert job.wait(0.3) is None
    assert job.running_time_s == 0
    commands.answer("scontrol", shown("RUNNING", restarts=1))
    assert job.wait(0.3) is None
    assert job.running_time_s > 0


def test_a_killed_job_is_waited_for(start, commands):
    job = start()
    commands.answer("scontrol", shown("RUNNING"), shown("COMPLETING"), shown("CANCELLED"))
    job.kill()
    assert [call[0] for call in commands.calls] == ["sbatch", "scancel", *["scontrol"] * 3]
    assert commands.calls[1] == ["scancel", "4711"]
    job.kill()
    assert len(commands.calls) == 5


def test_leftovers_are_found_by_name(start, commands, tmp_path):
    start()
    name = next(word for word in commands.calls[0] if word.startswith("--job-name="))
    launcher = SlurmLauncher(load_instance(str(TWO_HOSTS)).cluster)
    commands.answer("squeue", "12\n15\n")
    commands.answer("scontrol", shown("CANCELLED"))
    assert launcher.end_leftovers(tmp_path / "100%")
    asked, *rest = commands.calls[1:]
    assert asked == ["squeue", "--noheader", "--format=%i", name.replace("--job-name", "--name")]
    assert [call[-1] for call in rest] == ["12", "12", "15", "15"]
    commands.answer("squeue", "")
    assert not launcher.end_leftovers(tmp_path / "100%")
    commands.answer("squeue", (1, "", "slurm_load_jobs error:\n no controller\n"))
    with pytest.raises(LaunchError, match="squeue failed: slurm_load_jobs error: no controller"):
        launcher.end_leftovers(tmp_path / "100%")


def test_a_machine_without_slurm(start, commands):
    (commands.folder / "sbatch").unlink()
    with pytest.raises(LaunchError, match="expected sbatch of Slurm on the PATH, got none"):
        start()
