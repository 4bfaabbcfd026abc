"""One training run on the host: the trainer and its hooks, its plan, checkpoints, stored models and signals."""
