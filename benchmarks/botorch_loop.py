"""A plain BoTorch loop beside `logeic`: same table, same design, same noise, one process.

Usage: python benchmarks/botorch_loop.py [--seeds 3] [--evaluations 30]

The BoTorch loop is what its documentation shows: two `SingleTaskGP` fitted anew at each step,
`LogConstrainedExpectedImprovement`, and `optimize_acqf_discrete` over all rows. Prints seconds per
step of both, their ratio, and the final regrets. A step of ours also recommends.
"""

import argparse
import time
import warnings

import numpy as np
import torch
from botorch.acquisition.analytic import LogConstrainedExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf_discrete
from gpytorch.mlls import ExactMarginalLogLikelihood

import parabolt
from parabolt.analysis.metrics import simple_regret
from parabolt.experiments.protocol import Protocol
from parabolt.experiments.run import RunKey, execute
from parabolt.outcome import FloatArray
from parabolt.problems.noise import TorchNormalStream
from parabolt.problems.problem import Problem


def fitted(X: torch.Tensor, y: torch.Tensor, bounds: torch.Tensor) -> SingleTaskGP:
    """A `SingleTaskGP` with its defaults."""
    model = SingleTaskGP(
        X,
        y[:, None],
        input_transform=Normalize(d=X.shape[1], bounds=bounds),
        outcome_transform=Standardize(m=1),
    )
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


def botorch_run(problem: Problem, seed: int, protocol: Protocol) -> tuple[float, FloatArray]:
    """Final regret and seconds per step of the BoTorch loop."""
    told = parabolt.NoisyProblem(
        parabolt.ImputedProblem(problem),
        std=protocol.noise_std,
        stream=TorchNormalStream(seed),
    )
    everything = problem.evaluate_many(problem.space.encoded)
    rng = np.random.default_rng(seed)
    rows = protocol.initial_rows(everything.is_feasible, rng).tolist()
    outcomes = [told.evaluate(problem.space.candidates[row]) for row in rows]
    choices = torch.tensor(problem.space.encoded)
    bounds = torch.tensor(problem.instance.encoding.bounds)
    step_time_s = []
    for _ in range(protocol.n_evaluations):
        start = time.perf_counter()
        X = choices[rows]
        objective = fitted(X, torch.tensor([o.throughput for o in outcomes]), bounds)
        constraint = fitted(X, torch.tensor([o.memory_margin for o in outcomes]), bounds)
        acquisition = LogConstrainedExpectedImprovement(
            ModelListGP(objective, constraint),
            best_f=max(o.throughput for o in outcomes if o.is_feasible),
            objective_index=0,
            constraints={1: (None, 0.0)},
        )
        chosen, _ = optimize_acqf_discrete(acquisition, q=1, choices=choices)
        step_time_s.append(time.perf_counter() - start)
        rows.append(int(problem.space.rows(chosen.numpy())[0]))
        outcomes.append(told.evaluate(problem.space.candidates[rows[-1]]))
    feasible = np.where(everything.is_feasible, everything.throughput, -np.inf)
    return problem.optimum.value - float(feasible[rows].max()), np.array(step_time_s)


def main() -> None:
    """Runs both and prints the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--evaluations", type=int, default=30)
    options = parser.parse_args()
    torch.set_default_dtype(torch.double)
    warnings.simplefilter("ignore")
    protocol = Protocol(n_evaluations=options.evaluations)
    for name in ("pco32", "pco64"):
        problem = parabolt.load_problem(name)
        execute(problem, RunKey.of(problem, "logeic", 99, Protocol(n_evaluations=1)))
        botorch_run(problem, 99, Protocol(n_evaluations=1))  # both are warm from here
        ratios, regrets = [], []
        for seed in range(options.seeds):
            run = execute(problem, RunKey.of(problem, "logeic", seed, protocol))
            ours = float(np.nanmean(run.step_time_s))
            regret, steps = botorch_run(problem, seed, protocol)
            ratios.append(steps.mean() / ours)
            regrets.append((float(simple_regret(run)[-1]), regret))
            print(
                f"{name} seed {seed}: logeic {1e3 * ours:.2f} ms, BoTorch "
                f"{1e3 * steps.mean():.0f} ms per step, ratio {ratios[-1]:.0f}; "
                f"regret {regrets[-1][0]:.4f} / {regret:.4f}",
                flush=True,
            )
        mean = np.mean(regrets, axis=0)
        verdict = "met" if min(ratios) >= 50 else "MISSED"
        print(
            f"{name}: ratio {np.mean(ratios):.0f} [{min(ratios):.0f}, {max(ratios):.0f}], target "
            f"50: {verdict}; mean regret {mean[0]:.4f} / {mean[1]:.4f}, "
            f"{options.evaluations} evaluations after the design"
        )


if __name__ == "__main__":
    main()
