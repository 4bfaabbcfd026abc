"""Parts of training.py, export_step.py and gpu.py: sections, pipelines, kernels and products of a step, the device."""
