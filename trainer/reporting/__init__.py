"""What a run leaves behind: its folder, lines on the terminal, metrics, spoken samples, the names of bad clips."""
