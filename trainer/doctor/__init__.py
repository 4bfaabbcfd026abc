"""`xtts-doctor`: the causes of slow training on this machine, and how to fix them."""
