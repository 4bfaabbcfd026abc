"""`xtts-synth serve`: a warm voice behind HTTP, and a page to try it."""
