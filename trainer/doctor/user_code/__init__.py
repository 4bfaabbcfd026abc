"""Examines any TensorFlow code: what makes it retrace, and its profile."""
