"""The plan: configurations of a lattice, ranked by predicted throughput among those that fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from parabolt.costmodel.predictor import CostModel
from parabolt.errors import InstanceError, ObservationError, OptionError
from parabolt.frameworks.registry import launches
from parabolt.instances.micro_batches import n_micro_batches
from parabolt.planner.context import differences
from parabolt.planner.request import plan_rules
from parabolt.planner.variants import variants
from parabolt.space.lattice import enumerate_lattice
from parabolt.space.lazy_lattice import LazyLattice
from parabolt.space.removals import removals

if TYPE_CHECKING:
    from parabolt.costmodel.calibration.calibration import Calibration
    from parabolt.costmodel.calibration.evidence import Evidence
    from parabolt.costmodel.explanation import Explanation
    from parabolt.costmodel.predictor import Prediction
    from parabolt.frameworks.launch_settings import LaunchSettings
    from parabolt.instances.specs import Instance
    from parabolt.outcome import IntArray
    from parabolt.planner.variants import Variant
    from parabolt.space.configuration import Configuration
    from parabolt.space.configurations import Configurations
    from parabolt.space.removals import Removal

#: Configurations that are compared at most; of more, so many are drawn.
MOST_COMPARED = 1_000_000
#: Candidates whose uncertainty is worked out: this many times those asked for, best first.
_SHORTLIST = 20


@dataclass(frozen=True)
class PlannedConfiguration:
    """One line of a plan. All figures are predictions.

    Attributes:
        configuration: The configuration.
        n_micro_batches: Micro-batches per iteration of a replica.
        throughput: Iterations per second, median.
        throughput_low: Lower end of the central 90 % interval.
        throughput_high: Upper end.
        tokens_per_s: Tokens per second over all GPUs.
        peak_memory_gib: Peak memory in GiB, median.
        p_oom: Probability that the run dies.
        explanation: Where time and memory go, and what bounds the configuration.
        launches: Launch settings by framework.
    """

    configuration: Configuration
    n_micro_batches: int
    throughput: float
    throughput_low: float
    throughput_high: float
    tokens_per_s: float
    peak_memory_gib: float
    p_oom: float
    explanation: Explanation
    launches: tuple[LaunchSettings, ...]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "configuration": self.configuration.as_dict(),
            "n_micro_batches": self.n_micro_batches,
            "throughput": self.throughput,
            "throughput_interval_90": [self.throughput_low, self.throughput_high],
            "tokens_per_s": self.tokens_per_s,
            "peak_memory_gib": self.peak_memory_gib,
            "p_oom": self.p_oom,
            "explanation": self.explanation.as_dict(),
            "launches": [launch.as_dict() for launch in self.launches],
            "source": "predicted",
        }


@dataclass(frozen=True, eq=False)
class CandidateSet:
    """What a plan chooses from.

    Attributes:
        lattice: The configurations that meet all rules.
        removals: What each rule removed, in words.
    """

    lattice: LazyLattice
    removals: tuple[Removal, ...]

    @classmethod
    def of(cls, instance: Instance) -> CandidateSet:
        """The configurations of an instance that a plan may choose."""
        levels, rules = dict(instance.levels), plan_rules(instance)
        return cls(LazyLattice(levels, rules), removals(levels, rules))

    @property
    def n(self) -> int:
        """How many there are."""
        return self.lattice.n

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "n_candidates": self.n,
            "removed": [removal.as_dict() for removal in self.removals],
        }


@dataclass(frozen=True)
class Plan:
    """A ranked list of configurations.

    Attributes:
        entries: The best configurations within the risk, best first; of those that differ only in
            the bucket, the best.
        candidates: What there is to choose from.
        n_compared: Configurations that were compared: all that the cost model describes, or of each
            recomputation as many as `MOST_COMPARED`, drawn at random.
        n_fitting: Those of them whose median peak is within the memory.
        n_trials: Trials that the model was calibrated with.
        assumptions: What had to be assumed.
        not_compared: Searched values that the cost model does not describe, a line for each knob.
    """

    entries: tuple[PlannedConfiguration, ...]
    candidates: CandidateSet
    n_compared: int
    n_fitting: int
    n_trials: int
    assumptions: tuple[str, ...]
    not_compared: tuple[str, ...] = ()

    @property
    def n_candidates(self) -> int:
        """Configurations that meet the rules."""
        return self.candidates.n

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "entries": [entry.as_dict() for entry in self.entries],
            **self.candidates.as_dict(),
            "n_compared": self.n_compared,
            "n_fitting": self.n_fitting,
            "n_trials": self.n_trials,
            "assumptions": list(self.assumptions),
            "not_compared": list(self.not_compared),
        }


def make_plan(
    instance: Instance,
    *,
    calibration: Calibration | None = None,
    trials: Evidence | None = None,
    n_best: int = 5,
    max_risk: float = 0.1,
) -> Plan:
    """Ranks the configurations of an instance.

    Every configuration of the lattice gets a median step time and peak; the fastest that fit get
    their uncertainty, and those whose P(OOM) is too high are left out.

    Args:
        instance: From `plan_instance`.
        calibration: Belief about the coefficients; what specifications say by default.
        trials: Trials of this very instance to calibrate with.
        n_best: Length of the list.
        max_risk: Largest acceptable P(OOM).

    Returns:
        The plan; it has no entries where nothing fits.

    Raises:
        OptionError: For a length or a risk outside what is allowed.
        InstanceError: If no configuration meets the rules, or the cost model does not describe the
            model or the workload.
        InvalidConfigurationError: If the cost model does not describe a knob.
        ObservationError: If the trials are of another model, cluster or workload.
    """
    _check_options(n_best, max_risk)
    if trials is not None and (differing := differences(trials.instance, instance)):
        raise ObservationError(
            f"trials: expected those of {instance.name}, got some of {trials.instance.name}, which "
            f"differs in {', '.join(differing)}"
        )
    model = CostModel(instance, calibration)
    if trials is not None:
        model = CostModel(instance, model.calibration.fit(trials))
    candidates = CandidateSet.of(instance)
    _check_any(instance, candidates)
    parts, left_out = variants(instance)
    compared = [_compare(part, model.calibration, n_best, max_risk) for part in parts]
    ranked = sorted(
        (entry for part in compared for entry in part.entries),
        key=lambda entry: entry.throughput,
        reverse=True,
    )
    entries = tuple(ranked[:n_best])
    return Plan(
        entries,
        candidates,
        sum(part.n for part in compared),
        sum(part.n_fitting for part in compared),
        model.calibration.n_trials,
        (*model.assumptions, *_uneven_stages(instance.model.n_layers, entries)),
        left_out,
    )


class _Compared(NamedTuple):
    """What was compared of a variant: its best, how many there were, and how many fit."""

    entries: tuple[PlannedConfiguration, ...]
    n: int
    n_fitting: int


def _compare(variant: Variant, calibration: Calibration, n_best: int, max_risk: float) -> _Compared:
    instance, model = variant.instance, CostModel(variant.instance, calibration)
    levels, rules = dict(instance.levels), plan_rules(instance)
    whole = LazyLattice(levels, rules)
    if whole.n > MOST_COMPARED:
        lattice = whole.sample(MOST_COMPARED, np.random.default_rng(0))
    else:
        lattice = enumerate_lattice(levels, rules)
    if not len(lattice):
        return _Compared((), 0, 0)
    step_time_s, peak_gib = model.point(lattice)
    fits = peak_gib <= model.resolved.capacity_gib
    order = np.argsort(np.where(fits, step_time_s, np.inf), kind="stable")[: int(fits.sum())]
    shortlist = lattice.take(order[: _SHORTLIST * n_best])
    prediction = model.predict(shortlist)
    chosen = _without_bucket_twins(shortlist, np.flatnonzero(prediction.p_oom <= max_risk))
    entries = (_entry(model, shortlist, prediction, row) for row in chosen[:n_best])
    told = tuple(
        replace(
            entry,
            configuration=(c := variant.whole(entry.configuration)),
            explanation=replace(entry.explanation, configuration=c),
        )
        for entry in entries
    )
    return _Compared(told, len(lattice), int(fits.sum()))


def _uneven_stages(n_layers: int, entries: tuple[PlannedConfiguration, ...]) -> tuple[str, ...]:
    """That stages count as equal where a framework gives some a layer more."""
    of_entries = (entry.configuration for entry in entries)
    uneven = [c for c in of_entries if n_layers % (c.pp * c.chunks) and c.pp > 1]
    if not uneven or uneven[0].first_layers or uneven[0].last_layers:
        return ()
    c = uneven[0]
    mean = n_layers / (c.pp * c.chunks)
    return (
        f"uneven stages counted as equal ones, such as {mean:g} layers in each of {c.pp} x "
        f"{c.chunks}",
    )


def _check_any(instance: Instance, candidates: CandidateSet) -> None:
    if not candidates.n:
        n_gpus = instance.cluster.n_gpus
        why = candidates.removals[-1] if candidates.removals else f"none uses all {n_gpus} GPUs"
        raise InstanceError(f"expected configurations that meet the rules, got none: {why}")


def _check_options(n_best: int, max_risk: float) -> None:
    if type(n_best) is not int or n_best < 1:
        raise OptionError(f"n_best: expected a positive whole number, got {n_best!r}")
    if not 0.0 < max_risk <= 1.0:
        raise OptionError(f"max_risk: expected a probability above 0, got {max_risk!r}")


def _without_bucket_twins(shortlist: Configurations, rows: IntArray) -> list[int]:
    """Rows of the shortlist that don't differ from an earlier one in the bucket alone."""
    rest = shortlist.without("bucket")
    seen: set[bytes] = set()
    kept = []
    for row in map(int, rows):
        if (key := rest[row].tobytes()) not in seen:
            seen.add(key)
            kept.append(row)
    return kept


def _entry(
    model: CostModel, shortlist: Configurations, prediction: Prediction, row: int
) -> PlannedConfiguration:
    configuration = shortlist[row]
    low, high = prediction.throughput_interval(0.9)
    throughput = float(prediction.throughput[row])
    return PlannedConfiguration(
        configuration,
        n_micro_batches(model.instance.workload, configuration),
        throughput,
        float(low[row]),
        float(high[row]),
        throughput * model.resolved.tokens,
        float(prediction.peak_memory_gib[row]),
        float(prediction.p_oom[row]),
        model.explain(configuration),
        launches(model.instance, configuration),
    )
