"""What the steps return, in order."""

TRAIN_METRICS = (
    "loss", "prior", "flow", "duration", "duration_flow", "gradient_norm", "duration_gradient_norm", "learning_rate",
    "skipped", "useful_frames",
)  # fmt: skip
"""What one training step returns, float32[10], in this order."""
LOSSES = ("prior", "flow", "duration", "duration_flow")
"""What a validation step sums over its clips; the last is 0 for a model of mean durations."""
