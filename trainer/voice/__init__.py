"""What a voice is, and how it is stored: description, options, checkpoints, run folders, exported folders."""
