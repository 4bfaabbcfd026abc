"""Worker processes: pools that run tasks, progress reports, and stopping a build."""
