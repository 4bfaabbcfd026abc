"""One training run on the host: the trainer, its folder, checkpoints, reports and signals."""
