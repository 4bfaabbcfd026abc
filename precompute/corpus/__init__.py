"""Reading corpora: one module for each family of layouts, and the feature extractor from audio bytes to samples."""
