"""A cluster of your own: describe it, and see what may be tried."""

import parabolt

instance = parabolt.Instance(
    name="mine",
    model=parabolt.ModelShape(n_layers=32, n_heads=32, hidden_size=4096, ffn_size=14336),
    cluster=parabolt.Cluster(n_gpus=16, n_hosts=2, memory_gib=80),
    workload=parabolt.Workload(sequence_length=4096, batch_size=256),
    levels=(
        ("dp", (1, 2, 4, 8, 16)),
        ("tp", (1, 2, 4, 8)),
        ("pp", (1, 2, 4)),
        ("cp", (1,)),
        ("sp", (1, 2, 4, 8)),
        ("bucket", (64, 256)),
        ("zero", (0, 2, 3)),
        ("chunks", (1, 2)),
        ("grad_accum", (1,)),
    ),
)
space = parabolt.SearchSpace.lattice(instance)
print(len(space), "valid configurations, such as", space.candidates[0])

optimizer = parabolt.make_optimizer("logeic", space, seed=0)
first = optimizer.ask()
optimizer.tell(first, parabolt.Outcome.oom())
print("tried", first, "which ran out of memory; next:", optimizer.ask())
