"""The synthetic sample corpus: generated sentences, spoken by espeak-ng."""
