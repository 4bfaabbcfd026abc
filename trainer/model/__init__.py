"""The acoustic model: networks, layers, alignment search, recorded voices, losses."""
