"""From text to sound: sentences, engines, vocoders, sound files."""
