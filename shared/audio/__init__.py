"""Audio files to samples, samples to log-mel, and log-mel back to sound, or to pictures."""
