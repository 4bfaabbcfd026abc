"""Stored runs and voices: checkpoints, run folders, exported folders."""
