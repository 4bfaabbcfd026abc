"""Recordings without texts to a corpus: speech is detected, cut into clips at pauses, and transcribed by Whisper."""
