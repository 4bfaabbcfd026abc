"""Text to tokens: normalization, phonemes, tokenizers."""
