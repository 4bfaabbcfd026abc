"""Names of the ONNX graph that its maker and its user share."""

MEL = "mel"
"""The output: float32[1, M, T], natural-log magnitude."""
STEPS, NOISE = "steps", "noise"
"""Inputs that may be left out: Euler steps int64[1], and standard normal float32[1, F, M], by default of no frames."""
