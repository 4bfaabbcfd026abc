"""Stage 1: a corpus of recordings and texts to a cache of fixed-shape TFRecord shards."""
