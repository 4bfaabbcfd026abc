"""Speech from text to sound: sentences, runtimes, vocoders, sound files."""
