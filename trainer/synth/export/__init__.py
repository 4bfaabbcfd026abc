"""`xtts-synth export`: SavedModel, safetensors with a model card, ONNX, Piper."""
