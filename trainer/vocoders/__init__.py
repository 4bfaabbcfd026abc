"""From log-mel to samples: Griffin-Lim, and ONNX vocoders."""
