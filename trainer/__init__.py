"""Stage 2: a cache to a trained model; synthesis and the doctor."""
