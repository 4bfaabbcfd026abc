"""What workers do with clips: scan them, compute their features, write their shards."""
