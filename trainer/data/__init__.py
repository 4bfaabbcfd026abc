"""Batches: sizes, the order of the clips, the input pipeline."""
