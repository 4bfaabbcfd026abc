"""Names of the ONNX graph that its maker and its user share."""

MEL = "mel"
"""The output: float32[1, M, T], natural-log magnitude."""
WANTED_FRAMES = "wanted_frames"
"""Input of the signatures in TensorFlow, int32[1], and of the graph, int64[1], which may be left out: 0 for as many as
the durations have."""
SCHEDULE, NOISE = "schedule", "noise"
"""Inputs that may be left out: float32[N, 3] of `sampling_schedule`; standard normal float32[1, F, M], F is 0."""
