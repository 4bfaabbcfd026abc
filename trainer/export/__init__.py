"""Export: ONNX, safetensors with a model card, Piper; the voice that speaks for a checkpoint."""
