"""The spoken sample corpus: sentences of our own, read by espeak-ng."""
