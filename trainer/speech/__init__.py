"""From text to sound: sentences, runtimes, vocoders, sound files."""
