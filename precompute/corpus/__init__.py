"""What clips there are: one file for each corpus layout, and the front end from a file's bytes to samples."""
