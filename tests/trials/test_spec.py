import pytest

from parabolt.errors import SpecError
from parabolt.space.configuration import Configuration
from parabolt.trials.spec.file import load_spec, parse_spec
from parabolt.trials.spec.identity import changed_keys, digests_0_1, identity
from parabolt.trials.spec.template import Template, field_values

SPEC = """
instance = "pco16"
command = "torchrun --log-dir {log_dir} train.py --set '{configuration}' --mem {memory_gib}"

[environment]
NCCL_DEBUG = "INFO"
STEPS = "{steps}"

[trial]
warmup_steps = 2
timed_steps = 5
time_limit_s = 600
retries = 2
memory_gib = 70.5
log_format = "megatron"

[launcher]
gpus = [2, 3]

[budget]
trials = 20
gpu_hours = 3.5

[optimizer]
name = "tpe"
seed = 3
n_initial = 6

[early_termination]
threshold = 0.1
"""


def test_a_whole_spec(tmp_path):
    path = tmp_path / "spec.toml"
    path.write_text(SPEC)
    spec = load_spec(path)
    assert spec.instance.name == "pco16"
    assert spec.trial.steps == 7
    assert spec.memory_gib == 70.5
    assert spec.launcher.gpus == (2, 3)
    assert spec.budget.trials == 20
    assert spec.optimizer.options == {"n_initial": 6}
    assert spec.stopping.threshold == 0.1
    assert spec.folder == tmp_path
    assert spec.command.arguments[5] == "{configuration}"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('instance = "pco16"', "", "spec: expected instance, got command, environment"),
        ('"pco16"', '"pco17"', "unknown instance 'pco17'.*did you mean 'pco16'"),
        (
            "{configuration}",
            "{tp}",
            "bucket, chunks, dp, grad_accum, pp, sp, zero of pco16",
        ),
        ("gpus = [2, 3]", "gpus = [2, -3]", "gpus: expected a whole number of at least 0, got -3"),
        ("gpus = [2, 3]", "gpus = [2, 2]", r"gpus: expected distinct numbers, got \[2, 2\]"),
        ("seed = 3", "seed = 3.0", "seed: expected a whole number from 0 to 4294967295, got 3.0"),
        ("trials = 20", "trials = 9999999999", "trials: expected at most 1,000,000,000"),
        ("{memory_gib}", "{memory_gb}", r"got memory_gb of version 0.1, in 1e9 bytes; try"),
        ("{memory_gib}", "{tpp}", r"expected a field among .*, got \{tpp\}"),
        ("{memory_gib}", "{tp", "expected '}'"),
        ("{memory_gib}", "{tp:>3}", "expected a plain field"),
        ("train.py --set '", "train.py --set ", "No closing quotation"),
        ("[trial]", "[trail]", "expected keys among instance, command.*got trail"),
        ("timed_steps = 5", "timed_steps = 0", r"\[trial\] timed_steps: .* of at least 1, got 0"),
        ("timed_steps = 5", "timed_steps = 5.0", "timed_steps: expected a whole number, got 5.0"),
        ("timed_steps = 5", "time_steps = 5", r"\[trial\]: expected keys among .*, got time_steps"),
        ("time_limit_s = 600", "time_limit_s = -1", "time_limit_s: expected a positive number"),
        ("time_limit_s = 600", 'time_limit_s = "1 h"', "time_limit_s: expected a number"),
        ('"megatron"', '"megatorn"', "unknown log format 'megatorn'.*did you mean 'megatron-lm'"),
        ('"megatron"', '"patterns"', "patterns: expected with log_format"),
        ('"megatron"', '"patterns"\npatterns = ["("]', r"pattern '\('"),
        ('"megatron"', '"patterns"\npatterns = ["x(?P<step>1)"]', "expected the named group step"),
        ("gpus = [2, 3]", "gpus = []", "gpus: expected numbers"),
        ("gpus = [2, 3]", 'gpus = "2,3"', "gpus: expected a list of int"),
        ("gpus = [2, 3]", 'kind = "k8s"', "kind: expected one of local, slurm, got 'k8s'"),
        ("gpus = [2, 3]", 'options = ["-p"]', "options: expected with the slurm launcher only"),
        ("trials = 20\ngpu_hours = 3.5", "", r"\[budget\] expected trials, wall_clock_h or"),
        ("threshold = 0.1", "threshold = 2", r"\[early_termination\] threshold: expected"),
        ("[budget]", "[budget", "expected TOML"),
        ('NCCL_DEBUG = "INFO"', "NCCL_DEBUG = 1", "environment.NCCL_DEBUG: expected a text, got 1"),
    ],
)
def test_a_bad_spec_gives_one_clear_error(tmp_path, old, new, message):
    assert old in SPEC
    with pytest.raises(SpecError, match=message) as caught:
        parse_spec(SPEC.replace(old, new), origin="mine.toml", folder=tmp_path)
    assert str(caught.value).startswith("mine.toml: ")


def test_a_missing_file(tmp_path):
    with pytest.raises(SpecError, match="cannot read spec"):
        load_spec(tmp_path / "absent.toml")


def test_values_stay_within_their_argument():
    template = Template.parse(["{trial_dir}/x", "--a={tp}{{}}", "$(reboot); {dp}"])
    hostile = "a b;'\"$(touch x)`y`"
    assert template.fill({"trial_dir": hostile, "tp": 2, "dp": 4}) == (
        f"{hostile}/x", "--a=2{}", "$(reboot); 4"
    )  # fmt: skip


def test_field_values(make_spec):
    spec = make_spec()
    values = field_values(Configuration(dp=16, bucket=64, zero=2), spec.instance)
    assert values["zero"] == 2
    assert values["gpus_per_host"] == 8
    assert Configuration.parse(values["configuration"]).zero == 2


@pytest.mark.parametrize(
    ("old", "new", "keys"),
    [
        ("trials = 20", "trials = 30", []),
        ("gpus = [2, 3]", "gpus = [0]", []),
        ("time_limit_s = 600", "time_limit_s = 900", []),
        ("retries = 2", "retries = 0", []),
        ('NCCL_DEBUG = "INFO"', 'NCCL_DEBUG = "WARN"\nWANDB_MODE = "offline"', []),
        ('NCCL_DEBUG = "INFO"', 'NCCL_ALGO = "Ring"', ["environment.NCCL_ALGO"]),
        ('STEPS = "{steps}"', 'STEPS = "9"', ["environment.STEPS"]),
        ('STEPS = "{steps}"', "", ["environment.STEPS"]),
        ("--mem", "--memory", ["command"]),
        ("seed = 3", "seed = 4", ["optimizer.seed"]),
        ("n_initial = 6", "n_initial = 7", ["optimizer.n_initial"]),
        ("n_initial = 6", "repeats = 'allow'", ["optimizer.repeats", "optimizer.n_initial"]),
        ("timed_steps = 5", "timed_steps = 6", ["trial.timed_steps"]),
        ("warmup_steps = 2", "warmup_steps = 1", ["trial.warmup_steps"]),
        ("memory_gib = 70.5", "memory_gib = 70", ["trial.memory_gib"]),
        ("threshold = 0.1", "threshold = 0.2", ["early_termination.threshold"]),
        ("threshold = 0.1", "threshold = 0.1\nmin_steps = 5", []),
        ("pco16", "pco32", ["instance"]),
    ],
)
def test_the_keys_that_make_another_search(tmp_path, old, new, keys):
    assert old in SPEC

    def parts(text):
        return parse_spec(text, origin="x", folder=tmp_path).parts

    begun = identity(parts(SPEC))
    assert changed_keys(begun, parts(SPEC)) == []
    assert changed_keys(begun, parts(SPEC.replace(old, new))) == keys


OLD_SPEC = """
instance = "{instance}"
command = "train.py --set {{configuration}}"

[environment]
NCCL_DEBUG = "INFO"

[trial]
memory_gb = 70.5
log_format = "megatron"

[optimizer]
name = "tpe"
seed = 3
n_initial = 6

[early_termination]
threshold = 0.1
"""

OLD_INSTANCE = """
name = "mine"
model = {n_layers = 8, n_heads = 8, hidden_size = 512, ffn_size = 2048}
cluster = {n_gpus = 4, n_hosts = 1, memory_gb = 80}
workload = {sequence_length = 512, batch_size = 16, is_optimizer_sharded = false}
knobs = {bucket = [64, 256]}
"""


@pytest.mark.parametrize(
    ("instance", "digest"), [("pco16", "9ff005390fe45b32"), ("mine.toml", "50a772bdde3e63fa")]
)
def test_a_journal_of_version_0_1_goes_on(tmp_path, instance, digest):
    (tmp_path / "mine.toml").write_text(OLD_INSTANCE)
    text = OLD_SPEC.format(instance=instance)
    spec = parse_spec(text, origin="x", folder=tmp_path)
    written = {  # by version 0.1.0
        "purpose": "tune",
        "instance": digest,
        "command": "c48f163dae656be5",
        "environment": "0792fcca645a6830",
        "trial": "a04a46ec1acdfe43",
        "optimizer": "f07902a2e9d546ef",
        "early_termination": "28aa3cc419ad0c7c",
    }
    assert digests_0_1({"purpose": "tune", **spec.parts}) == written
    assert changed_keys(written, {"purpose": "tune", **spec.parts}) == []
    assert changed_keys(written, {"purpose": "sweep", **spec.parts}) == ["purpose"]
    other = parse_spec(text.replace("70.5", "70"), origin="x", folder=tmp_path)
    assert changed_keys(written, {"purpose": "tune", **other.parts}) == ["trial"]


def test_what_version_0_1_could_not_say_is_another_search(tmp_path):
    (tmp_path / "mine.toml").write_text(OLD_INSTANCE.replace("bucket =", "ep = [1], bucket ="))
    text = OLD_SPEC.format(instance="mine.toml")
    spec = parse_spec(text, origin="x", folder=tmp_path)
    assert digests_0_1(spec.parts)["instance"] == "50a772bdde3e63fa"
    for new in ("64, 96]", "64], zero = [0, 1]"):
        (tmp_path / "mine.toml").write_text(OLD_INSTANCE.replace("64, 256]", new))
        spec = parse_spec(text, origin="x", folder=tmp_path)
        assert "instance" not in digests_0_1(spec.parts)


def test_defaults(make_spec):
    spec = make_spec(sections="[trial]\n")
    assert (spec.trial.warmup_steps, spec.trial.timed_steps, spec.trial.retries) == (2, 10, 1)
    assert (spec.trial.time_limit_s, spec.memory_gib) == (1800, 80)
    assert (spec.optimizer.name, spec.optimizer.seed) == ("parabolt", 0)
    assert spec.launcher.kind == "local"
    assert spec.stopping is None
    stopping = make_spec(sections="[trial]\n[early_termination]\n").stopping
    assert (stopping.threshold, stopping.min_steps) == (0.05, 5)


MEGATRON = """
instance = "pco32"
command = ["torchrun", "pretrain_gpt.py", "{flags}", "--train-iters", "{steps}"]
framework = "megatron-lm"
"""


def test_the_settings_of_a_framework_become_arguments(tmp_path):
    spec = parse_spec(MEGATRON, origin="x", folder=tmp_path)
    arguments = spec.arguments(Configuration(dp=16, tp=2, sp=2, bucket=64, zero=2), {"steps": 12})
    assert arguments[:4] == ("torchrun", "pretrain_gpt.py", "--tensor-model-parallel-size", "2")
    assert arguments[-2:] == ("--train-iters", "12")
    assert "--sequence-parallel" in arguments
    assert arguments[arguments.index("--ckpt-format") + 1] == "fsdp_dtensor"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"megatron-lm"', '"megatron-ml"', "framework 'megatron-ml'.*did you mean 'megatron-lm'"),
        ('"megatron-lm"', '"litgpt"', "unknown framework 'litgpt': expected one of deepspeed"),
        ('framework = "megatron-lm"', "", "framework: expected with the argument {flags}"),
        ('"{flags}", ', "", "framework: expected with the argument {flags} and only with it"),
        ('"{flags}"', '"x{flags}"', "expected a field among"),
    ],
)
def test_bad_frameworks(tmp_path, old, new, message):
    with pytest.raises(SpecError, match=message):
        parse_spec(MEGATRON.replace(old, new), origin="x", folder=tmp_path)
