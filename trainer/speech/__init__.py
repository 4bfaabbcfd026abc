"""Speech of exported voices, from text to sound: sentences, the graph, vocoders, sound files."""
