"""Parts of training.py, step_cost.py and export_step.py: the sections, the pipelines compared, a step by itself."""
