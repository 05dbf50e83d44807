"""Problems of any size that nobody measured: drawn from the cost model, and marked so."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from scipy.special import expit

from parabolt.costmodel.calibration.calibration import Calibration
from parabolt.costmodel.predictor import CostModel
from parabolt.costmodel.terms.crash import crash_features
from parabolt.errors import OptionError
from parabolt.instances.catalogue import load_instance
from parabolt.instances.search_space import SearchSpace
from parabolt.outcome import OOM_MARGIN
from parabolt.problems.registry import SIMULATED
from parabolt.problems.tabular import TabularProblem
from parabolt.tables.schema import context_values
from parabolt.tables.table import Table

if TYPE_CHECKING:
    from parabolt.instances.specs import Instance
    from parabolt.outcome import BoolArray, FloatArray

_VERSION = "simulated"
#: Timed steps of a simulated run, and the seconds it takes to start.
_N_STEPS, _START_UP_S = 20, 120.0


@dataclass(frozen=True)
class Effects:
    """Sizes of the effects that the cost model doesn't know.

    The defaults are of the kind seen in pco32 and pco64: rows that ought to be equal differ by 0.2
    to 0.4 % in the mean, the calibrated model is off by about 3 % (one standard deviation), a few
    runs are 5 to 30 % slow, one in a hundred dies far below capacity.

    Attributes:
        coefficient_scale: Share of the prior's standard deviations that the hidden coefficients
            are drawn with; 0 gives the specifications' machine.
        structure: Log standard deviation of what the model gets wrong for a configuration.
        noise: Log standard deviation of a run's mean step time.
        slow_share: Share of runs that meet a slow link or host.
        slow_factor: Largest slow-down of such a run.
        fragmentation: Scale of the exponential share of memory that the allocator loses.

    Raises:
        OptionError: For a negative size.
    """

    coefficient_scale: float = 0.7
    structure: float = 0.03
    noise: float = 0.004
    slow_share: float = 0.02
    slow_factor: float = 1.3
    fragmentation: float = 0.01

    def __post_init__(self) -> None:
        for name, size in self.__dict__.items():
            if not 0.0 <= size < float("inf"):
                raise OptionError(f"{name}: expected a number >= 0, got {size}")


class SimulatedProblem(TabularProblem):
    """A problem whose table is drawn from the cost model with hidden coefficients.

    Its name is the address that `at` and `load_problem` take, and every figure has the source
    `simulated`. The same instance, seed and effects give the same table.

    Args:
        instance: The instance; its candidates are the whole lattice.
        seed: Seed of the hidden machine and of all noise.
        effects: Sizes of the effects beyond the cost model.

    Raises:
        TableError: If no configuration fits.
        OptionError: For a seed outside what is allowed.
    """

    def __init__(self, instance: Instance, *, seed: int, effects: Effects | None = None) -> None:
        if type(seed) is not int or seed < 0:
            raise OptionError(f"seed: expected a whole number >= 0, got {seed!r}")
        named = replace(instance, name=f"simulated-{instance.name.removeprefix('simulated-')}")
        effects = effects or Effects()
        super().__init__(_draw(named, np.random.default_rng(seed), effects))
        self.seed, self.effects = seed, effects
        self.name = _address(instance, seed, effects)
        self.content_hash = self._identity_hash()

    @classmethod
    def at(cls, address: str) -> SimulatedProblem:
        """The problem at an address such as `simulated:pco16?seed=3&noise=0.05`.

        Args:
            address: `simulated:` and a built-in instance or the path of a TOML file; then options:
                `seed` (0 by default) and the fields of `Effects`.

        Raises:
            OptionError: For an option that isn't known, comes twice or can't be.
            UnknownNameError: If there is no such instance.
        """
        name, _, query = address.removeprefix(SIMULATED).partition("?")
        given = [pair.partition("=")[::2] for pair in query.split("&") if pair]
        options = dict(given)
        known = ("seed", *(field.name for field in fields(Effects)))
        if len(options) < len(given) or not set(options) <= set(known):
            raise OptionError(
                f"{address}: expected {SIMULATED}INSTANCE?OPTION=VALUE&..., each option once and "
                f"among {', '.join(known)}, got {query}"
            )
        try:
            seed = int(options.pop("seed", "0"))
            effects = Effects(**{option: float(value) for option, value in options.items()})
        except ValueError as error:
            raise OptionError(f"{address}: {error}") from error
        return cls(load_instance(name), seed=seed, effects=effects)

    def _identity_hash(self) -> str:
        """Hash of what the table was drawn from, and of two figures that tell another cost model.

        The table's own hash would differ between processors, in the last bits.
        """
        drawn_from = (
            replace(self.instance, name=""), self.seed, self.effects,
            int(self.table.is_feasible.sum()), f"{self.optimum.value:.6g}",
        )  # fmt: skip
        return sha256(repr(drawn_from).encode()).hexdigest()


def _address(instance: Instance, seed: int, effects: Effects) -> str:
    changed = "".join(
        f"&{field.name}={getattr(effects, field.name)!r}"
        for field in fields(Effects)
        if getattr(effects, field.name) != field.default
    )
    return f"{SIMULATED}{instance.name.removeprefix('simulated-')}?seed={seed}{changed}"


def _draw(instance: Instance, rng: np.random.Generator, effects: Effects) -> Table:
    space = SearchSpace.lattice(instance)
    model = CostModel(instance, hidden_machine(rng, effects.coefficient_scale))
    prediction = model.predict(space.encoded)
    n = len(space)
    structure = _per_family(instance, space.encoded, rng) * effects.structure
    slow = np.where(rng.random(n) < effects.slow_share, rng.random(n), 0.0)
    slowdown = np.exp(structure + effects.noise * rng.standard_normal(n))
    seconds = prediction.step_time_s * slowdown * (1.0 + (effects.slow_factor - 1.0) * slow)
    peak_gib = prediction.peak_memory_gib
    lost = 1.0 + rng.exponential(effects.fragmentation, n)
    failures = model.calibration.failures
    usable_gib = failures.usable * instance.cluster.memory_gib
    hazard = expit(crash_features(model.layout(space.encoded)) @ failures.crash.mean)
    is_ok = (peak_gib * lost <= usable_gib) & (rng.random(n) >= hazard)
    spread = effects.noise * np.sqrt(_N_STEPS) * rng.gamma(4.0, 0.25, n)
    return Table(
        pa.table(_columns(instance, space, is_ok, seconds, peak_gib, spread)),
        instance,
        version=_VERSION,
    )


def hidden_machine(rng: np.random.Generator, scale: float = 1.0) -> Calibration:
    """A machine drawn from the prior: coefficients within two standard deviations.

    Args:
        rng: Source of randomness.
        scale: Share of the prior's standard deviations.
    """
    start = Calibration.prior()

    def draw(mean: FloatArray, covariance: FloatArray) -> FloatArray:
        normal = np.clip(rng.standard_normal(len(mean)), -2.0, 2.0)
        drawn: FloatArray = mean + scale * np.sqrt(np.diag(covariance)) * normal
        return drawn

    time = replace(start.time, mean=draw(start.time.mean, start.time.covariance))
    memory = replace(start.memory, mean=draw(start.memory.mean, start.memory.covariance))
    crash = start.failures.crash
    crash = replace(crash, mean=draw(crash.mean, 0.25 * crash.covariance))
    return replace(start, time=time, memory=memory, failures=replace(start.failures, crash=crash))


def _per_family(instance: Instance, encoded: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Standard normals (n,), the same for rows that differ in the bucket alone."""
    is_bucket = [label.startswith("bucket_") for label in instance.encoding.labels]
    rest = np.delete(encoded, np.flatnonzero(is_bucket), axis=1)
    family = np.unique(rest, axis=0, return_inverse=True)[1].ravel()
    normals: FloatArray = rng.standard_normal(family.max() + 1)[family]
    return normals


def _columns(
    instance: Instance,
    space: SearchSpace,
    is_ok: BoolArray,
    seconds: FloatArray,
    peak_gib: FloatArray,
    spread: FloatArray,
) -> dict[str, pa.Array]:
    n, capacity = len(space), instance.cluster.memory_gib
    encoding = instance.encoding
    cells = encoding.cells(encoding.configurations(space.encoded))
    columns = {name: pa.array(values) for name, values in cells.items()}
    for name, value in context_values(instance).items():
        columns[name] = pa.array([value] * n)
    throughput = np.where(is_ok, 1.0 / seconds, np.nan)
    word = pa.array(["simulated"] * n)
    sources = np.where(is_ok, "simulated", "").tolist()
    return {
        **columns,
        "ran_successfully": pa.array(is_ok),
        "throughput_mean": pa.array(throughput),
        "throughput_std": pa.array(throughput * spread),
        "peak_mem_normalised": pa.array(np.where(is_ok, peak_gib / capacity - 1.0, OOM_MARGIN)),
        "overall_time": pa.array(np.where(is_ok, _START_UP_S + _N_STEPS * seconds, np.nan)),
        "peak_mem": pa.array(np.where(is_ok, peak_gib, np.inf)),
        "source_feasible": word,
        "source_throughput": pa.array(sources),
        "source_memory": pa.array(sources),
    }
