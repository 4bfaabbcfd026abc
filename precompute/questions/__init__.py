"""A corpus with questions, which are made of recorded statements."""
