"""A configuration explained: seconds and GiB by term, as a table and as a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from parabolt.costmodel.step_time import TIME_TERMS
from parabolt.errors import MissingDependencyError

if TYPE_CHECKING:
    import os

    from parabolt.space.configuration import Configuration


@dataclass(frozen=True)
class Explanation:
    """Where a configuration's time and memory go.

    Attributes:
        configuration: The configuration.
        time_s: Seconds per iteration by term; the sum is the step time.
        memory_gib: GiB at the peak by term; the sum is the peak.
        capacity_gib: Memory of a GPU.
        log_time_std: Standard deviation of the logarithm of the step time.
        log_memory_std: Standard deviation of the logarithm of the peak.
        p_oom: Probability that the run dies.
        assumptions: What had to be assumed.
    """

    configuration: Configuration
    time_s: dict[str, float]
    memory_gib: dict[str, float]
    capacity_gib: float
    log_time_std: float
    log_memory_std: float
    p_oom: float
    assumptions: tuple[str, ...]

    @property
    def step_time_s(self) -> float:
        """Seconds per iteration."""
        return sum(self.time_s.values())

    @property
    def peak_memory_gib(self) -> float:
        """Peak memory in GiB."""
        return sum(self.memory_gib.values())

    @property
    def bound_by(self) -> str:
        """What beside compute takes most time (see `Term.bound`); `compute` if that is little."""
        seconds: dict[str, float] = {}
        for term in TIME_TERMS:
            seconds[term.bound] = seconds.get(term.bound, 0.0) + self.time_s[term.name]
        worst = max((bound for bound in seconds if bound != "compute"), key=seconds.__getitem__)
        return worst if seconds[worst] >= 0.1 * self.step_time_s else "compute"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "configuration": self.configuration.as_dict(),
            "step_time_s": self.step_time_s,
            "peak_memory_gib": self.peak_memory_gib,
            "capacity_gib": self.capacity_gib,
            "p_oom": self.p_oom,
            "bound_by": self.bound_by,
            "time_s": self.time_s,
            "memory_gib": self.memory_gib,
            "assumptions": list(self.assumptions),
        }

    def __str__(self) -> str:
        parts = (
            (self.time_s, "s", self.step_time_s, self.log_time_std, "step time"),
            (self.memory_gib, "GiB", self.peak_memory_gib, self.log_memory_std, "peak memory"),
        )
        lines = [str(self.configuration)]
        for terms, unit, total, std, what in parts:
            lines.append(f"{what} {total:.3f} {unit} +- {100 * std:.0f} %")
            shown = sorted(terms.items(), key=lambda item: -item[1])
            lines += [
                f"  {name:20s} {value:8.3f} {unit} {100 * value / total:5.1f} %"
                for name, value in shown
                if value >= 5e-4
            ]
        lines.append(f"P(out of memory) {self.p_oom:.3f}, bound by {self.bound_by}")
        lines += [f"assumed: {text}" for text in self.assumptions]
        return "\n".join(lines)

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Draws two stacked bars, seconds and GiB, and saves them; the suffix sets the format.

        Raises:
            MissingDependencyError: If matplotlib is not installed.
        """
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise MissingDependencyError.of("matplotlib", "plot") from error
        figure = Figure(figsize=(9, 6), layout="constrained")
        left, right = figure.subplots(1, 2)
        _bar(left, self.time_s, "s", "step time")
        _bar(right, self.memory_gib, "GiB", "peak memory")
        right.axhline(self.capacity_gib, color="black", linestyle="--", label="capacity")
        for axes in (left, right):
            axes.legend(fontsize="x-small", loc="center left", bbox_to_anchor=(1.0, 0.5))
        figure.suptitle(f"{self.configuration} (predicted)", fontsize="small")
        figure.savefig(path)


def _bar(axes: Any, terms: dict[str, float], unit: str, what: str) -> None:
    bottom = 0.0
    for name, value in sorted(terms.items(), key=lambda item: -item[1]):
        if value > 0.005 * sum(terms.values()):
            axes.bar([what], [value], bottom=[bottom], label=f"{name} {value:.3g} {unit}")
            bottom += value
    axes.set_ylabel(unit)
