"""What workers do with a clip: compute its mel, filter it, reuse stored mels."""
