"""How each figure of a table is known: measured, interpolated, or imputed where a run died."""

from collections import Counter

import parabolt

for name in ("pco32", "pco64"):
    problem = parabolt.load_problem(name)
    for what in (problem, parabolt.ImputedProblem(problem)):
        outcomes = what.evaluate_many(problem.space.encoded)
        counts = Counter(str(outcome.throughput_source) for outcome in outcomes)
        print(name, type(what).__name__, dict(counts))
