"""Export: SavedModel, safetensors with a model card, ONNX, Piper; what a voice is."""
