"""The process and the device: TensorFlow's import, the device of the steps."""
