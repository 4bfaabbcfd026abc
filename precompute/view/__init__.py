"""Looking at a cache: one clip, the HTML report, what the commands print."""
