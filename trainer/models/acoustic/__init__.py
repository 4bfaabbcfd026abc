"""The acoustic model, from text to mel: network, losses, samples, and its place among the kinds of model."""
