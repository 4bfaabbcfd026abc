"""The vocoder, from mel to samples: network, losses, samples, and its place among the kinds of model."""
