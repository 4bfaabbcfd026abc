"""Our voice and its vocoder, which serves every voice of its mel profile."""
