"""Figures of speech against its recording, listeners' models, held-out clips."""
