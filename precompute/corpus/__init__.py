"""What clips there are: one file for each corpus layout, and the feature extractor from a file's bytes to samples."""
