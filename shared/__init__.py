"""Code that both stages use: configuration, audio, text, the cache format."""
