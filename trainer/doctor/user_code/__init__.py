"""Looking at any TensorFlow code: what makes it trace again, and its profile."""
