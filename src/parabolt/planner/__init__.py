"""From a model, a cluster and a workload to a ranked list of configurations with launch flags."""
