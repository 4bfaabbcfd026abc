"""The cache format: cache.json, the clip index, records, bucket shapes, statistics."""
