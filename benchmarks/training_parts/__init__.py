"""Parts of training.py and export_step.py: the sections, the pipelines compared, the kernels of a step."""
