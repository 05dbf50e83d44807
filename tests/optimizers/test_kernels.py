import gpytorch
import numpy as np
import pytest
import torch

import parabolt
from parabolt.errors import OptionError
from parabolt.optimizers.gp.gp import GaussianProcess, Hyperparameters
from parabolt.optimizers.gp.kernels import KERNELS, cholesky_root, kernel_matrix

PEERS = {
    "rbf": lambda d: gpytorch.kernels.RBFKernel(ard_num_dims=d),
    "matern52": lambda d: gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=d),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_is_gpytorchs(name):
    rng = np.random.default_rng(0)
    A, B, lengthscales = rng.random((20, 4)), rng.random((30, 4)), np.array([0.2, 0.5, 1.0, 3.0])
    peer = PEERS[name](4).double()
    peer.lengthscale = torch.tensor(lengthscales)
    with torch.no_grad():
        expected = peer(torch.tensor(A), torch.tensor(B)).to_dense().numpy()
    assert kernel_matrix(name, A, B, lengthscales) == pytest.approx(expected, abs=1e-9)
    assert np.diag(kernel_matrix(name, A, A, lengthscales)) == pytest.approx(1.0, abs=1e-7)


@pytest.mark.parametrize("name", KERNELS)
def test_slope_is_the_difference_quotient(name):
    D = np.array([1e-3, 0.1, 1.0, 9.0])
    quotient = (KERNELS[name](D + 1e-6)[0] - KERNELS[name](D - 1e-6)[0]) / 2e-6
    assert KERNELS[name](D)[1] == pytest.approx(quotient, rel=1e-6)
    assert KERNELS[name](np.zeros(1))[1] == pytest.approx({"rbf": -0.5, "matern52": -5 / 6}[name])


def test_root_of_a_singular_covariance():
    C = np.ones((4, 4))
    root = cholesky_root(C)
    assert root @ root.T == pytest.approx(C, abs=1e-6)


def test_prediction_in_blocks_is_prediction_at_once(monkeypatch):
    import parabolt.optimizers.gp.gp as gp_module

    rng = np.random.default_rng(0)
    X, y, points = rng.random((9, 3)), rng.random(9), rng.random((101, 3))
    gp = GaussianProcess(X, y, Hyperparameters(np.ones(3), 0.01), kernel="matern52")
    whole = gp.predict(points)
    monkeypatch.setattr(gp_module, "_BLOCK_CELLS", 50)
    parts = gp.predict(points)
    assert np.allclose(whole, parts, rtol=1e-12)


@pytest.mark.parametrize("name", ["logeic", "cts", "scbo", "ckg", "lognei", "admmbo+prior"])
def test_methods_take_the_matern_kernel(name):
    problem = parabolt.load_problem("pco32")
    optimizer = parabolt.make_optimizer(name, problem.space, kernel="matern52")
    for _ in range(14):
        configuration = optimizer.ask()
        optimizer.tell(configuration, problem.evaluate(configuration))
    assert optimizer.surrogate().objective.gp.kernel == "matern52"
    assert optimizer.n_failed_fits == 0


def test_unknown_kernel_is_refused():
    space = parabolt.load_problem("pco32").space
    with pytest.raises(OptionError, match="kernel: expected one of rbf, matern52, got 'linear'"):
        parabolt.make_optimizer("logeic", space, kernel="linear")
