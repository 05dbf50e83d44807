"""The problems as BoTorch test problems, with the public interface of bolt-bench 0.2.0.

`from bolt import PCO32` becomes `from parabolt.integrations.botorch import PCO32`, and nothing else
changes, except where the original was wrong:

- `is_minimization_problem` says False, as throughput is maximised (True with `negate=True`);
- a `b x q x d` batch gives `b x q x 1`, and a single point `d` gives `1`;
- problems can be pickled and deep-copied;
- `candidates()` and the buffers are copies: editing them changes no answer;
- arrays, lists and whole-number tensors are accepted, and answered in the dtype of `bounds`;
- noise comes from the problem's own generator (`seed`), not from the global one;
- `optimal_value`, `optimizers` and `worst_feasible_value` are public, and `is_imputed` and
  `is_measured` say how an answer is known;
- nothing is downloaded (only `PCO16` has no embedded table: it comes from the Hub, or a file).

Symbols: X is `batch_shape x d`; N candidates; answers are `batch_shape x 1` in the dtype of X.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from parabolt.analysis.tradeoff import hypervolume, pareto_rows
from parabolt.errors import InvalidConfigurationError, MissingDependencyError, OptionError
from parabolt.instances.catalogue import load_instance
from parabolt.optimizers.told_margin import told_margin
from parabolt.outcome import SOURCES, Source
from parabolt.problems.imputation import impute_throughput
from parabolt.problems.registry import load_problem
from parabolt.problems.snapping import SNAP_TOLERANCE
from parabolt.tables.publishing.hub import PUBLISHED

try:
    import torch
    from botorch.test_functions.base import ConstrainedBaseTestProblem, MultiObjectiveTestProblem
except ImportError as error:
    raise MissingDependencyError.of("botorch", "botorch") from error

if TYPE_CHECKING:
    from parabolt.outcome import FloatArray, IntArray
    from parabolt.problems.problem import Problem


class TableLookup(torch.nn.Module):
    """What `obj_func` of the original is: the table behind a problem, for reading.

    Attributes:
        ds: Column name to values (N,): inputs, throughput and peak memory.
        input_cols: Columns of `Xs`, in order.
        output_col: Column of `ys`.
        Xs: Encoded candidates (N, d).
        ys: Throughput (N,) in iterations/s; NaN where the run died.
    """

    def __init__(self, problem: Problem, output_col: str) -> None:
        super().__init__()
        outcomes = problem.evaluate_many(problem.space.encoded)
        self._space = problem.space
        self.input_cols = _input_columns(problem.instance)
        self.output_col = output_col
        encoding = problem.instance.encoding
        cells = encoding.cells(encoding.configurations(problem.space.encoded))
        self.ds: dict[str, Any] = {
            name: column.astype(np.float64) if column.dtype.kind == "i" else column
            for name, column in cells.items()
        }
        self.ds |= {output_col: outcomes.throughput, "peak_mem": outcomes.peak_memory_gib}
        self.register_buffer("Xs", torch.tensor(problem.space.encoded), persistent=False)
        self.register_buffer("ys", torch.tensor(outcomes.throughput), persistent=False)

    def evaluate_true(self, X: Any) -> Any:
        """Throughput of the nearest candidate, `batch_shape x 1`; NaN where the run died."""
        points = torch.as_tensor(X)
        flat = points.detach().cpu().double().numpy().reshape(-1, len(self.input_cols))
        rows = self._space.nearest_rows(flat)
        found = torch.tensor(self.ds[self.output_col][rows]).reshape(*points.shape[:-1], 1)
        return found.to(device=points.device, dtype=points.dtype)


class PCO(ConstrainedBaseTestProblem):
    """Parallelism configuration on one instance: maximise throughput without running out of memory.

    Objective: throughput in iterations/s; where the run died the mean of the nearest feasible
    candidates stands in (see `is_imputed`). Constraint: slack = 1 - peak/capacity, and -0.2 where
    the run died; positive if and only if the run fits. Search `candidates()`, not the box: a point
    that is no candidate stands for its nearest one, with a RuntimeWarning.

    Args:
        noise_std: Standard deviation of the noise on the throughput; None for none.
        negate: Whether `forward` gives the negated throughput, to be minimised.
        dtype: Dtype of bounds and buffers.
        seed: Seed of the noise. The stream is that of `torch.manual_seed(seed)`.
        problem: The problem to wrap, noiseless and with nothing imputed; by default that of the
            class's name.

    Raises:
        OptionError: If neither the class nor the caller names a problem, or the two don't agree.
        TableError: If the data of `PCO16` can't be had.

    Attributes:
        feasible: Which candidates are feasible, (N,) bool.
        peak_mem: Peak memory in GiB (N,); inf where the run died.
        margin: Memory margin (N,); 0.2 where the run died, -0.2 where it finished and its memory is
            not known.
        y_imputed: Throughput (N,), imputed where the run died.
    """

    name: str = ""
    hf_repo: str
    hf_revision: str | None = None
    num_gpus: int
    num_hosts: int
    batch_size: int
    mem_capacity_gb: float
    input_cols: ClassVar[list[str]]
    objective_col = "throughput_mean"
    num_constraints = 1
    continuous_inds: ClassVar[list[int]] = []
    categorical_inds: ClassVar[list[int]] = []
    _check_grad_at_opt = False
    _is_minimization_by_default = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" in cls.__dict__:
            cls.hf_repo, cls.hf_revision = PUBLISHED[cls.name].repo, PUBLISHED[cls.name].revision
            for attribute, value in _facts(load_instance(cls.name)).items():
                setattr(cls, attribute, value)

    def __init__(
        self,
        noise_std: float | list[float] | None = None,
        negate: bool = False,  # noqa: FBT001, FBT002 - the original's signature
        dtype: Any = torch.double,
        *,
        seed: int = 0,
        problem: Problem | None = None,
    ) -> None:
        found = problem or self._own_problem()
        if self.name and found.instance != load_instance(self.name):
            raise OptionError(
                f"problem: expected one of instance {self.name}, got {found.name}; try "
                "PCO(problem=...)"
            )
        facts = {} if self.name else {"name": found.name, **_facts(found.instance)}
        self.__dict__.update(facts)  # BoTorch reads them while it is set up
        super().__init__(noise_std=noise_std, negate=negate, dtype=dtype)
        self._generator = torch.Generator().manual_seed(seed)
        self._space = found.space
        self._outcomes = found.evaluate_many(found.space.encoded)
        margins = np.array([told_margin(outcome) for outcome in self._outcomes])
        self._slack = -margins
        feasible = self._outcomes.is_feasible
        self._filled = impute_throughput(found.space.encoded, self._outcomes.throughput, feasible)
        self._optimal_value = found.optimum.value
        self._optimizers = [
            tuple(found.instance.encoding.encode([found.optimum.configuration])[0].tolist())
        ]
        self._worst_feasible_value = float(self._outcomes.throughput[feasible].min())
        self.obj_func = TableLookup(found, self.objective_col)
        self.register_buffer("feasible", torch.tensor(feasible))
        for buffer, values in (
            ("peak_mem", self._outcomes.peak_memory_gib),
            ("y_imputed", self._filled),
            ("margin", margins),
        ):
            self.register_buffer(buffer, torch.tensor(values, dtype=dtype))

    def _own_problem(self) -> Problem:
        if not self.name:
            raise OptionError("problem: expected a problem, got none; try PCO32()")
        source = "hub" if self.name == "pco16" else "embedded"
        return load_problem(self.name, source=source)

    def candidates(self, dtype: Any = None, device: Any = None) -> Any:
        """All candidates, encoded, (N, d): a copy, by default in the dtype of `bounds`."""
        dtype = self.bounds.dtype if dtype is None else dtype
        return torch.tensor(self._space.encoded, dtype=dtype, device=device or self.bounds.device)

    @property
    def optimal_value(self) -> float:
        """The best feasible throughput, negated with `negate`."""
        return -self._optimal_value if self.negate else self._optimal_value

    @property
    def optimizers(self) -> Any:
        """The best feasible candidate, encoded, (1, d)."""
        return torch.tensor(self._optimizers, dtype=self.bounds.dtype, device=self.bounds.device)

    def forward(self, X: Any, noise: bool = True) -> Any:  # noqa: FBT001, FBT002 - BoTorch's
        """Observed throughput `batch_shape x 1`: negated with `negate`, noisy with `noise`."""
        values = self.evaluate_true(X)
        if noise and self.noise_std is not None:
            values = values + self._noise(self.noise_std, values)
        return -values if self.negate else values

    def evaluate_true(self, X: Any) -> Any:
        """Noiseless throughput `batch_shape x 1`, imputed where the run died; never negated.

        Raises:
            InvalidConfigurationError: If X has another width, or is out of bounds or not whole.
        """
        return self._look_up(self._filled, X)

    def evaluate_slack(self, X: Any, noise: bool = True) -> Any:  # noqa: FBT001, FBT002 - BoTorch's
        """Slack `batch_shape x 1`: positive if and only if the run fits."""
        slack = self.evaluate_slack_true(X)
        if noise and self.constraint_noise_std is not None:
            slack = slack + self._noise(self.constraint_noise_std, slack)
        return slack

    def evaluate_slack_true(self, X: Any) -> Any:
        """Noiseless slack `batch_shape x 1`; see `evaluate_slack`."""
        return self._look_up(self._slack, X)

    def evaluate_peak_mem(self, X: Any) -> Any:
        """Peak memory `batch_shape x 1` in GiB; inf where the run died."""
        return self._look_up(self._outcomes.peak_memory_gib, X)

    def is_imputed(self, X: Any) -> Any:
        """Where the throughput stands in for a run that died, `batch_shape` bool."""
        return self._look_up(self._outcomes.is_infeasible, X).squeeze(-1)

    def is_measured(self, X: Any) -> Any:
        """Where the throughput comes from a run of that very candidate, `batch_shape` bool."""
        measured = self._outcomes.throughput_source == SOURCES.index(Source.MEASURED)
        return self._look_up(measured, X).squeeze(-1)

    def _evaluate_true(self, X: Any) -> Any:
        return self.evaluate_true(X)

    def _evaluate_slack_true(self, X: Any) -> Any:
        return self.evaluate_slack_true(X)

    def _noise(self, std: float | list[float], like: Any) -> Any:
        draws = torch.randn(like.shape, generator=self._generator, dtype=like.dtype)
        return (torch.tensor(std, dtype=like.dtype) * draws).to(like.device)

    def _look_up(self, values: Any, X: Any) -> Any:
        points = X if torch.is_tensor(X) else torch.as_tensor(np.asarray(X))
        flat = self._checked(points)
        found = torch.tensor(values[self._nearest(flat)]).reshape(*points.shape[:-1], 1)
        if found.dtype == torch.bool:
            return found.to(points.device)
        # Whole-number tensors and arrays can't hold the answer, so it comes in the problem's dtype.
        own = torch.is_tensor(X) and points.is_floating_point()
        return found.to(device=points.device, dtype=points.dtype if own else self.bounds.dtype)

    def _checked(self, points: Any) -> FloatArray:
        """The points as rows (n, d), within bounds and whole."""
        if points.ndim < 1 or points.shape[-1] != self.dim:
            raise InvalidConfigurationError(
                f"expected X of shape batch_shape x {self.dim}, got {tuple(points.shape)}"
            )
        flat: FloatArray = points.detach().cpu().double().numpy().reshape(-1, self.dim)
        lower, upper = self._space.instance.encoding.bounds
        is_whole = [
            isinstance(low, int) for low, _ in self._space.instance.encoding.ranges.values()
        ]
        wrong = ~((flat >= lower) & (flat <= upper))
        wrong |= np.array(is_whole) & (flat != np.round(flat))
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            raise InvalidConfigurationError(
                f"point {row}, {self.input_cols[column]}: expected a whole level from "
                f"{lower[column]:g} to {upper[column]:g}, got {flat[row, column]:g}"
            )
        return flat

    def _nearest(self, flat: FloatArray) -> IntArray:
        if len(flat) == 0:
            return np.zeros(0, dtype=np.int64)
        rows = self._space.nearest_rows(flat)
        distance = np.linalg.norm(flat - self._space.encoded[rows], axis=1)
        if n_snapped := int((distance > SNAP_TOLERANCE).sum()):
            warnings.warn(
                f"{self.name}: {n_snapped} of {len(flat)} points are no candidates and stand for "
                "their nearest; search `candidates()`",
                RuntimeWarning,
                stacklevel=4,
            )
        return rows


def _input_columns(instance: Any) -> list[str]:
    """A name for each column of the encoding: the table's, or `column=word` of a choice."""
    columns: list[str] = []
    for axis in instance.encoding.axes:
        is_choice = axis.scale.width > 1
        columns += [f"{axis.column}={w}" for w in axis.words] if is_choice else [axis.column]
    return columns


def _facts(instance: Any) -> dict[str, Any]:
    """What BoTorch and the original keep in class attributes."""
    ranges = list(instance.encoding.ranges.values())
    return {
        "dim": len(ranges),
        "_bounds": ranges,
        "discrete_inds": list(range(len(ranges))),
        "input_cols": _input_columns(instance),
        "num_gpus": instance.cluster.n_gpus,
        "num_hosts": instance.cluster.n_hosts,
        "batch_size": instance.workload.batch_size,
        "mem_capacity_gb": float(instance.cluster.memory_gib),
    }


class PCOWithMemory(PCO, MultiObjectiveTestProblem):
    """Two objectives: most throughput and least peak memory, both to be maximised.

    Answers are `batch_shape x 2`: throughput in iterations/s, and the negated peak memory in GiB;
    where the run died, the throughput is imputed as in `PCO`, and the memory is 1.2 times the
    capacity. `ref_point` is (0 iterations/s, -capacity), and `max_hv` the hypervolume of the
    candidates' front, in iterations/s x GiB. `noise_std` may be a list of two.

    Args:
        problem: The problem to wrap, noiseless and with nothing imputed.
        noise_std: Standard deviation of the noise on each objective, or on both; None for none.
        negate: Whether `forward` gives both negated, to be minimised.
        dtype: Dtype of bounds and buffers.
        seed: Seed of the noise.
    """

    num_objectives = 2

    def __init__(
        self,
        problem: Problem,
        noise_std: float | list[float] | None = None,
        *,
        negate: bool = False,
        dtype: Any = torch.double,
        seed: int = 0,
    ) -> None:
        capacity = float(problem.instance.cluster.memory_gib)
        self.__dict__["_ref_point"] = [0.0, -capacity]  # BoTorch reads it while it is set up
        super().__init__(noise_std, negate, dtype, seed=seed, problem=problem)
        peaks = self._outcomes.peak_memory_gib
        self._memory = np.where(np.isfinite(peaks), peaks, capacity * (1.0 - self._slack))
        self._max_hv = hypervolume(self._outcomes, capacity)

    def evaluate_true(self, X: Any) -> Any:
        """Noiseless objectives `batch_shape x 2`; never negated."""
        return torch.cat([super().evaluate_true(X), -self._look_up(self._memory, X)], dim=-1)

    def gen_pareto_front(self, n: int) -> Any:
        """The first `n` points of the candidates' front, (at most n, 2), by ascending memory."""
        rows = pareto_rows(self._outcomes)[:n]
        front = np.stack([self._outcomes.throughput[rows], -self._memory[rows]], axis=1)
        sign = -1.0 if self.negate else 1.0
        return sign * torch.tensor(front, dtype=self.bounds.dtype, device=self.bounds.device)


class PCO16(PCO):
    """32 layers on 16 GPUs; its data come from the Hub (extra `hub`), or from `problem`."""

    name = "pco16"


class PCO32(PCO):
    """40 layers on 32 GPUs; 379 candidates, of which 339 fit."""

    name = "pco32"


class PCO64(PCO):
    """64 layers on 64 GPUs; 780 candidates, of which 560 fit."""

    name = "pco64"
