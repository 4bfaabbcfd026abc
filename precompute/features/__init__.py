"""Work on a single clip: compute its mel, filter it, reuse its stored mel."""
