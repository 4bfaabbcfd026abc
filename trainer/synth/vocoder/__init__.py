"""From log-mel to waveform: Griffin-Lim, and published ONNX vocoders."""
