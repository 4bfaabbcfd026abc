"""`xtts-synth serve`: a voice behind HTTP, loaded and compiled once, and a page to try it."""
