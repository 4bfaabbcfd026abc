"""Kinds of model: everything in which training a voice, a vocoder or the next one differs."""
