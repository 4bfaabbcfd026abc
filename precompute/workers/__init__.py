"""Worker processes: the pool, how a job is stopped from outside, how it reports progress."""
