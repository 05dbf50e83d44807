"""`parabolt plan`: the best configurations of a model on a cluster, before the first run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from parabolt.cli.output import Json, console, print_json
from parabolt.cli.plan_view import show_candidates, show_plan
from parabolt.errors import OptionError
from parabolt.instances.catalogue import load_instance
from parabolt.instances.cluster_words import parse_cluster
from parabolt.instances.dialects import BOLT
from parabolt.instances.figures import read_figure
from parabolt.instances.models import load_model
from parabolt.instances.specs import Workload
from parabolt.planner.knob_words import parse_fixed, parse_knobs
from parabolt.planner.past_trials import read_own_trials
from parabolt.planner.plan import CandidateSet, make_plan
from parabolt.planner.request import plan_instance, replanned

if TYPE_CHECKING:
    from parabolt.instances.specs import Instance

T = TypeVar("T")
#: Fields of a workload that have options of their own.
_OWN_OPTIONS = ("sequence_length", "batch_size")


def plan(
    instance: Annotated[str, typer.Option(help="TOML file, or name of a built-in instance.")] = "",
    model: Annotated[
        str, typer.Option(help="Catalogue name or path of a config.json, and own figures.")
    ] = "",
    cluster: Annotated[
        str, typer.Option(help='Hosts x GPUs per host, GPU, own figures: "16x4 h100-96gb".')
    ] = "",
    seq: Annotated[int | None, typer.Option(help="Tokens per sequence.")] = None,
    batch: Annotated[int | None, typer.Option(help="Sequences per iteration.")] = None,
    batch_tokens: Annotated[
        int | None, typer.Option(help="Tokens per iteration, in place of --batch.")
    ] = None,
    micro_batch: Annotated[
        int | None, typer.Option(help="Sequences per micro-batch; else 1.")
    ] = None,
    recompute: Annotated[
        str, typer.Option(help="none, selective, layer (as if not stated) or chunk.")
    ] = "",
    workload: Annotated[
        str, typer.Option(help='Further figures: "gradient_bytes=2 sequences=packed".')
    ] = "",
    precision: Annotated[str, typer.Option(help="One, or several to search: bf16,fp8.")] = "",
    fix: Annotated[
        list[str] | None, typer.Option(help='Values of knobs: "tp=8 zero=1"; may be repeated.')
    ] = None,
    search: Annotated[
        list[str] | None,
        typer.Option(help="Knobs that are searched, with values or all: recompute,ep=8,16."),
    ] = None,
    framework: Annotated[
        str, typer.Option(help="Whose rules hold: bolt, torchtitan, megatron-lm@0.16, ...")
    ] = "",
    count: Annotated[
        bool, typer.Option("--count", help="Say what there is to choose from, and stop.")
    ] = False,
    trials: Annotated[str, typer.Option(help="Trials to learn from: CSV, journal, sweep.")] = "",
    top: Annotated[int, typer.Option(help="How many configurations to list.")] = 5,
    max_risk: Annotated[float, typer.Option(help="Largest acceptable P(OOM).")] = 0.1,
    explain: Annotated[bool, typer.Option("--explain", help="Break the best down.")] = False,
    json: Json = False,
) -> int:
    """Rank configurations by predicted throughput, with memory, risk and launch flags.

    What is planned is an instance, or a model on a cluster with a workload.
    """
    knobs = _knobs(
        fix or [], search or [], precision=precision, micro_batch=micro_batch, recompute=recompute
    )
    if instance:
        if model or cluster or workload or {seq, batch, batch_tokens} != {None}:
            raise OptionError("expected --instance, or --model, --cluster and a batch, got both")
        found = replanned(load_instance(instance), knobs)
        found = replace(found, dialect=framework) if framework else found
    else:
        found = plan_instance(
            load_model(_stated("--model", model)),
            parse_cluster(_stated("--cluster", cluster)),
            _workload(seq, batch, batch_tokens, workload, knobs),
            knobs=knobs,
            dialect=framework or BOLT,
        )
    return _answer(found, trials, top, max_risk, is_count=count, is_explained=explain, is_json=json)


def _answer(
    instance: Instance, trials: str, top: int, max_risk: float,
    *, is_count: bool, is_explained: bool, is_json: bool,
) -> int:  # fmt: skip
    if is_count:
        candidates = CandidateSet.of(instance)
        if is_json:
            print_json(candidates.as_dict())
        else:
            show_candidates(console(), candidates, instance)
        return 0 if candidates.n else 1
    evidence = read_own_trials(trials, instance) if trials else None
    found = make_plan(instance, trials=evidence, n_best=top, max_risk=max_risk)
    if is_json:
        print_json(found.as_dict())
    else:
        show_plan(console(), found, instance, is_explained=is_explained)
    return 0 if found.entries else 1


def _knobs(
    fix: list[str], search: list[str], *, precision: str, micro_batch: int | None, recompute: str
) -> dict[str, tuple[int, ...]]:
    """Knob to its values, from all options that state some."""
    own = [f"precision={precision}"] if precision else []
    own += [] if micro_batch is None else [f"micro_batch={micro_batch}"]
    own += [f"recompute={recompute}"] if recompute else []
    parts = (parse_fixed(fix), parse_knobs(search), *(parse_knobs([text]) for text in own))
    found: dict[str, tuple[int, ...]] = {}
    for part in parts:
        if twice := found.keys() & part.keys():
            raise OptionError(f"{min(twice)}: expected it to be stated once, got it twice")
        found |= part
    return found


def _workload(
    seq: int | None,
    batch: int | None,
    batch_tokens: int | None,
    figures: str,
    knobs: dict[str, tuple[int, ...]],
) -> Workload:
    length = _stated("--seq", seq)
    if batch is None and batch_tokens is not None:
        if length < 1 or batch_tokens % length:
            raise OptionError(
                f"--batch-tokens: expected whole sequences of {length} tokens, got {batch_tokens}"
            )
        batch = batch_tokens // length
    elif batch is None or batch_tokens is not None:
        raise OptionError("expected --batch in sequences or --batch-tokens, got both or none")
    stated = dict(read_figure(word, Workload, "workload", _OWN_OPTIONS) for word in figures.split())
    stated.setdefault("micro_batch_size", None if "grad_accum" in knobs else 1)
    stated.setdefault("recomputation", "none" if "recompute" in knobs else "layer")
    return Workload(length, batch, **stated)


def _stated(option: str, value: T | None) -> T:
    if value is None or value == "":
        raise OptionError(f"expected {option}, or an --instance that states it, got none")
    return value
