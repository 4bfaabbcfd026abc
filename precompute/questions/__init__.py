"""Questions made of recorded statements: a corpus that asks, for voices that hear the mark."""
