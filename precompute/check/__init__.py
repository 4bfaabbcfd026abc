"""Checking and repairing a finished cache."""
