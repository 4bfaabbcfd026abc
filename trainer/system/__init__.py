"""The process and the device: how TensorFlow is imported, what the steps run on, the command group."""
