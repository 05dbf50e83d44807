import math

import numpy as np
import pytest

from parabolt.integrations.box import CandidateBox
from parabolt.integrations.ray_tune import search_space, trainable


def test_domains_and_results(pco64):
    domains = search_space(pco64.space)
    assert {name: domain.categories for name, domain in domains.items()} == CandidateBox(
        pco64.space
    ).sizes
    try_candidate = trainable(pco64)
    box = CandidateBox(pco64.space)
    best = try_candidate(box.sizes_of(pco64.space.row(pco64.optimum.configuration)))
    assert best["throughput"] == pco64.optimum.value
    assert (best["status"], best["is_candidate"]) == ("ok", True)
    died = try_candidate(box.sizes_of(int(np.flatnonzero(~pco64.table.is_feasible)[0])))
    assert died["status"] == "oom"
    assert math.isnan(died["throughput"])
    assert died["memory_margin"] == 0.2
    near = try_candidate(dict.fromkeys(box.sizes, 2) | {"bucket": 64})
    assert not near["is_candidate"]


@pytest.mark.slow
def test_a_search(pco64, tmp_path):
    import ray
    from ray import tune

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        np.random.seed(0)  # noqa: NPY002 - Tune's basic variants draw from the global generator
        tuner = tune.Tuner(
            trainable(pco64),
            param_space=search_space(pco64.space),
            tune_config=tune.TuneConfig(metric="throughput", mode="max", num_samples=6),
            run_config=tune.RunConfig(storage_path=str(tmp_path), verbose=0),
        )
        results = tuner.fit()
        assert results.num_errors == 0
        figures = [result.metrics["throughput"] for result in results]
        assert len(figures) == 6
        assert results.get_best_result().metrics["throughput"] == np.nanmax(figures)
    finally:
        ray.shutdown()
