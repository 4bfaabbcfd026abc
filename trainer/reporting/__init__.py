"""Reports of a run: lines on the terminal, metrics, spoken samples."""
