"""A program for Optuna with another first line: its trials come from a study made with --ask."""
import muster_study as optuna  # instead of: import optuna


def objective(trial):
    x = trial.suggest_float("x", -10, 10)
    layers = trial.suggest_int("layers", 1, 3)
    optimizer = trial.suggest_categorical("optimizer", ["adam", "sgd"])
    momentum = trial.suggest_float("momentum", 0, 0.9) if optimizer == "sgd" else 0.5
    return (x - 2) ** 2 + layers / 10 + (momentum - 0.3) ** 2


study = optuna.create_study(study_name="wf", direction="minimize")
study.optimize(objective, n_trials=100)
print(study.best_params, study.best_value)
