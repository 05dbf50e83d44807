"""One search, by hand: ask, evaluate, tell."""

import parabolt

problem = parabolt.load_problem("pco64")
optimizer = parabolt.make_optimizer("logeic", problem.space, seed=0)
best = 0.0
for number in range(1, 41):
    configuration = optimizer.ask()
    outcome = problem.evaluate(configuration)
    optimizer.tell(configuration, outcome)
    if outcome.is_feasible and outcome.throughput > best:
        best = outcome.throughput
        percent = 100 * best / problem.optimum.value
        print(f"{number:3d}  {configuration}  {percent:5.1f} % of the optimum")
print("deploy:", optimizer.recommend())
