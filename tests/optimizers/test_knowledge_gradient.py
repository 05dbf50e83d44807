"""cKG on 12 candidates, worked out by brute force: refits, and a fine grid for the integral."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import trapezoid
from scipy.stats import norm

import parabolt
from parabolt.optimizers.published.knowledge_gradient import contenders, expected_maximum
from parabolt.outcome import Outcome

Y = norm.ppf(np.arange(1, 10) / 10)
C = norm.ppf(np.arange(1, 6) / 6)


def small(n=12, seed=0):
    """cKG on 12 candidates of pco64, five of which were observed."""
    problem = parabolt.load_problem("pco64")
    rows = np.sort(np.random.default_rng(seed).choice(780, n, replace=False))
    space = parabolt.SearchSpace(problem.instance, problem.space.encoded[rows])
    optimizer = parabolt.make_optimizer("ckg", space, seed=0, n_initial=1)
    told = parabolt.ImputedProblem(problem)
    for i in range(0, n, max(1, n // 5)):
        optimizer.tell(space.candidates[i], told.evaluate(space.candidates[i]))
    return optimizer


def dense_posterior(gp, X):
    """Mean and covariance at X by the textbook formula, without a Cholesky factor."""

    def kernel(a, b):
        d = (a[:, None] - b[None]) / gp.hyper.lengthscales
        return np.exp(-0.5 * (d**2).sum(axis=-1))

    A = kernel(gp.X, gp.X) + gp.hyper.noise * np.eye(len(gp.X))
    k = kernel(X, gp.X)
    shift, scale = gp.standardization.shift, gp.standardization.scale
    z = (gp.y - shift) / scale
    mean = gp.hyper.mean + k @ np.linalg.inv(A) @ (z - gp.hyper.mean)
    covariance = kernel(X, X) - k @ np.linalg.inv(A) @ k.T
    return shift + scale * mean, scale**2 * covariance, scale**2 * gp.hyper.noise


def brute_force(f, c, x):
    """cKG of candidate x: every outcome and every candidate in plain loops."""
    (fm, fC, fs), (cm, cC, cs) = f, c
    sens_f = fC[x] / np.sqrt(fC[x, x] + fs)
    sens_c = cC[x] / np.sqrt(cC[x, x] + cs)
    today = np.argmax(fm * norm.cdf(-cm / np.sqrt(np.diag(cC))))
    p_after = [
        norm.cdf(-(cm + sens_c * z) / np.sqrt(np.maximum(np.diag(cC) - sens_c**2, 1e-12)))
        for z in C
    ]
    chosen = set()
    for p in p_after:
        for z in Y:
            chosen |= set(np.argsort(-(fm + sens_f * z) * p, kind="stable")[:2].tolist())
    chosen = sorted(chosen)
    z = np.linspace(-9, 9, 200_001)
    gains = []
    for p in p_after:
        best = np.full_like(z, -np.inf)
        for i in chosen:
            best = np.maximum(best, (fm[i] + sens_f[i] * z) * p[i])
        gains.append(trapezoid(best * norm.pdf(z), z) - fm[today] * p[today])
    return np.mean(gains)


@pytest.mark.parametrize("seed", range(4))
def test_choice_and_values_are_those_of_brute_force(seed, monkeypatch):
    import parabolt.optimizers.published.ckg as ckg

    optimizer, values = small(seed=seed), []
    real = ckg.knowledge_gradient
    monkeypatch.setattr(ckg, "knowledge_gradient", lambda *a: values.append(real(*a)) or values[-1])
    surrogate = optimizer.surrogate()
    X = surrogate.candidates
    f = dense_posterior(surrogate.objective.gp, X)
    c = dense_posterior(surrogate.constraint.gp, X)
    expected = np.array([brute_force(f, c, x) for x in range(12)])
    chosen = optimizer._choose(surrogate, np.arange(12))
    assert values[0] == pytest.approx(expected, rel=1e-5, abs=1e-9)
    assert expected[chosen] == pytest.approx(expected.max(), abs=1e-9)
    assert (expected > -1e-9).all()


@given(seed=st.integers(0, 10_000), n=st.integers(1, 12))
@settings(max_examples=60)
def test_expected_maximum_of_lines_is_the_integral(seed, n):
    rng = np.random.default_rng(seed)
    a, s = rng.normal(size=(2, 3, n)).round(1)  # ties and equal lines are common
    z = np.linspace(-10, 10, 40_001)
    best = (a[..., None] + s[..., None] * z).max(axis=1)
    expected = trapezoid(best * norm.pdf(z), z, axis=-1)
    assert expected_maximum(a, s) == pytest.approx(expected, abs=1e-6)


def test_expected_maximum_by_hand():
    # E max(0, Z) = 1 / sqrt(2 pi); E |Z| = sqrt(2 / pi); a line that is never on top adds nothing.
    assert expected_maximum(np.zeros(2), np.array([0.0, 1.0])) == pytest.approx(0.3989422804)
    assert expected_maximum(np.zeros(2), np.array([-1.0, 1.0])) == pytest.approx(0.7978845608)
    assert expected_maximum(np.array([0.0, 0.0, -9.0]), np.array([0.0, 1.0, 0.5])) == (
        pytest.approx(0.3989422804)
    )
    assert expected_maximum(np.array([2.0]), np.array([3.0])) == pytest.approx(2.0)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=60)
def test_no_outcome_makes_an_excluded_candidate_one_of_the_best_two(seed):
    """Any sensitivities that a posterior may have: at most its standard deviations."""
    rng = np.random.default_rng(seed)
    n = 30
    fm, fs = rng.normal(0.2, 0.2, n), rng.gamma(1.0, 0.1, n)
    cm, cs = rng.normal(-0.1, 0.3, n), rng.gamma(1.0, 0.1, n)
    kept = contenders(fm, fs, cm, cs)
    for _ in range(5):
        sf, sc = fs * rng.uniform(-1, 1, n), cs * rng.uniform(-1, 1, n)
        for zc in C:
            p = norm.cdf(-(cm + sc * zc) / np.sqrt(cs**2 - sc**2))
            for zy in Y:
                best = np.argsort(-(fm + sf * zy) * p)[:2]
                assert set(best) <= set(kept)


def test_leaving_candidates_out_changes_no_value(monkeypatch):
    import parabolt.optimizers.published.ckg as ckg

    problem = parabolt.ImputedProblem(parabolt.load_problem("pco32"))
    optimizer = parabolt.make_optimizer("ckg", problem.space, seed=0)
    for row in np.random.default_rng(0).choice(379, 40, replace=False):
        configuration = problem.space.candidates[row]
        optimizer.tell(configuration, problem.evaluate(configuration))
    surrogate, rows, values = optimizer.surrogate(), np.arange(379), []
    real = ckg.knowledge_gradient
    monkeypatch.setattr(ckg, "knowledge_gradient", lambda *a: values.append(real(*a)) or values[-1])
    optimizer._choose(surrogate, rows)
    monkeypatch.setattr(ckg, "contenders", lambda mean, *_: np.arange(len(mean)))
    optimizer._choose(surrogate, rows)
    assert len(optimizer._inner_rows(surrogate)[0]) == 379
    assert values[0] == pytest.approx(values[1], rel=1e-9, abs=1e-15)


def test_ties_are_broken_at_random_and_counted():
    space = small().space
    optimizer = parabolt.make_optimizer("ckg", space, seed=0, n_initial=1, repeats="allow")
    for i in range(6):
        optimizer.tell(space.candidates[i], Outcome.ok(0.25, memory_margin=-0.3))
    chosen = {optimizer._choose(optimizer.surrogate(), np.arange(12)) for _ in range(40)}
    if optimizer.n_tied > 1:
        assert len(chosen) > 1
    else:
        assert len(chosen) == 1
