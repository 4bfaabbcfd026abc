"""Compiled steps and the loops that run them: training, validation, optimizer, state."""
