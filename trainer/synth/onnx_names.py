"""Names of the ONNX graph that its maker and its user share."""

MEL = "mel"
"""The output: float32[1, M, T], natural-log magnitude."""
SCHEDULE, GUIDANCE, NOISE = "schedule", "guidance", "noise"
"""Inputs that may be left out: float32[N, 3] of `sampling_schedule`; the strength of guidance, float32[1], where the
model has a null condition; and standard normal float32[1, F, M], by default of no frames."""
