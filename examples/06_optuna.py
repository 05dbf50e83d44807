"""Optuna searches a problem (extra `optuna`)."""

import optuna

import parabolt
from parabolt.integrations.optuna import Objective

optuna.logging.set_verbosity(optuna.logging.WARNING)
problem = parabolt.load_problem("pco32")
study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
study.optimize(Objective(problem), n_trials=60)
best = study.best_trial
n_died = sum(trial.user_attrs["status"] == "oom" for trial in study.trials)
print(f"{best.user_attrs['configuration']}: {best.value:.4f} iterations/s; {n_died} trials died")
