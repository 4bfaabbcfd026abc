"""Names of the ONNX graph that its maker and its user share."""

MEL = "mel"
"""The output: float32[1, M, T], natural-log magnitude."""
WANTED_FRAMES, DURATION_NOISE = "wanted_frames", "duration_noise"
"""Inputs of the signatures in TensorFlow: int32[1], 0 for as many as the durations have, and float32[], a deviation.

The ONNX graph takes the first too, int64[1], which may be left out."""
START = "duration_start"
"""Input that may be left out, of models that draw durations: float32[1, F], noise; F is 0 or at least the tokens."""
SCHEDULE, NOISE = "schedule", "noise"
"""Inputs that may be left out: float32[N, 3] of `sampling_schedule`; standard normal float32[1, F, M], F is 0."""
