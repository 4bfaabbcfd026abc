"""The acoustic model: networks, layers, alignment search, reference encoder, losses."""
