"""Files and memory: atomic writes, locks of a folder, malloc, peak memory."""
