"""`xtts-doctor`: what would slow training down here, and what to change."""
