"""What the steps return, in order."""

TRAIN_METRICS = (
    "loss", "prior", "flow", "duration", "gradient_norm", "duration_gradient_norm", "learning_rate",
    "skipped", "useful_frames",
)  # fmt: skip
"""What one training step returns, float32[9], in this order."""
LOSSES = ("prior", "flow", "duration")
"""What a validation step sums over its clips."""
