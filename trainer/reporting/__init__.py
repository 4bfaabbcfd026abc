"""What a run reports: lines on the terminal, metrics, spoken samples."""
