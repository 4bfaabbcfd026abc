"""One training run on the host: its plan, its life, its hooks and signals."""
