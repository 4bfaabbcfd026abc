"""What a benchmark needs before it measures: default options, the commands, a corpus of the lengths of LJSpeech."""
