"""Our voice and its vocoder, which speaks for every voice of its mel profile."""
