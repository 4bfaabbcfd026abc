"""From log-mel to waveform: Griffin-Lim, and ONNX vocoders as they are found."""
