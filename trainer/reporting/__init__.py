"""What a run leaves behind: its folder, lines on the terminal, metrics, spoken samples, skipped updates."""
