"""The steps from corpus to cache: scan, plan, write, index, commit."""
