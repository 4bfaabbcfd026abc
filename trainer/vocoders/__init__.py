"""From log-mel to samples: Griffin-Lim, and ONNX vocoders; `hifigan.onnx` is that of the profile `hifigan`."""
