"""Figures of speech against its recording, and what synthesis needs besides the weights."""
