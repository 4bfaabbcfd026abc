"""Parts of training.py and steps.py: sections, pipelines, kernels of a step."""
