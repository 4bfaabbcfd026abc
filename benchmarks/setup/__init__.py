"""What a benchmark needs before it measures: options, commands, runs, a corpus of the lengths of LJSpeech."""
