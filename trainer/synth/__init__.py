"""`xtts-synth`: speech from a checkpoint, evaluation and export."""
