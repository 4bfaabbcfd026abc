"""Names of the locked steps, as messages and exported steps have them."""

UPDATE = "update"
"""The step that updates the weights."""
EXCHANGE = "exchange of averages"
"""The step that swaps the weights and their averages."""


def training_step(bucket: int) -> str:
    """Name of the step that computes the gradients of a bucket's batch."""
    return f"training step of bucket {bucket:02d}"


def validation_step(bucket: int) -> str:
    """Name of the step that computes the losses of a bucket's validation clips."""
    return f"validation step of bucket {bucket:02d}"
