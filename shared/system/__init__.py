"""Files and memory: atomic writes, the lock of a folder, malloc, peak memory."""
