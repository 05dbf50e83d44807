"""The problems as BoTorch test problems (extra `botorch`)."""

import torch

from parabolt.integrations.botorch import PCO64

problem = PCO64(noise_std=0.001, seed=0)
X = problem.candidates()
y = problem(X)
fits = problem.is_feasible(X)
print(f"{tuple(X.shape)} candidates, {int(fits.sum())} fit")
print(f"optimum {problem.optimal_value:.6f} at {problem.optimizers[0].tolist()}")
batch = X[torch.arange(12)].reshape(3, 4, 8)
print("a batch", tuple(batch.shape), "gives", tuple(problem(batch).shape))
